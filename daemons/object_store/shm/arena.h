// The node's shared memory: one file without a name, so that nothing is left behind however the
// daemon ends.
//
// It has two descriptors: one read-write, and one opened read-only, from which readers cannot make
// a writable mapping. Pages are reserved (fallocate) before any client is shown them, so that a
// full file system is an Error here and never a SIGBUS in a client. One thread at a time may call
// reserve(); everything else is constant after create().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace rt::store {

class Arena {
 public:
  struct Options {
    // If empty, /dev/shm, or memory without a file system if that has too little space.
    std::string directory;
    // If 0, 30% of the available memory, but at most the space that the file system has.
    int64_t capacity = 0;
    int64_t min_capacity = 0;
  };
  // Fails with kInvalid, kIo or kObjectStoreFull; the message names the directory, its free space,
  // the wanted size and the remedy.
  static Result<std::unique_ptr<Arena>> create(const Options& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int64_t capacity() const { return capacity_; }
  int read_write_fd() const { return read_write_; }
  int read_only_fd() const { return read_only_; }
  const std::string& place() const { return place_; }

  // Makes sure that the pages of [offset, offset+size) exist. Fails with kObjectStoreFull, naming
  // the file system.
  Status reserve(int64_t offset, int64_t size);
  // The daemon's own mappings, for transfers. Callers may touch reserved ranges only.
  MutableBytes writable(int64_t offset, int64_t size) {
    return {read_write_map_ + offset, static_cast<size_t>(size)};
  }
  Bytes readable(int64_t offset, int64_t size) const {
    return {read_only_map_ + offset, static_cast<size_t>(size)};
  }

 private:
  Arena() = default;

  int64_t capacity_ = 0;
  int read_write_ = -1;
  int read_only_ = -1;
  uint8_t* read_write_map_ = nullptr;
  const uint8_t* read_only_map_ = nullptr;
  std::string place_;
  std::string reserve_hint_;
};

}  // namespace rt::store
