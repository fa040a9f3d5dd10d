// The node's shared memory: one file without a name, so that nothing is left behind however the
// daemon ends.
//
// Two descriptors: read-write, and one opened again read-only, from which readers cannot make a
// writable mapping. Pages are reserved (fallocate) before anybody is shown them: a full file system
// is an Error here and never a SIGBUS in a client. Threads: reserve() from one thread at a time,
// the rest is constant after create().
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
    std::string
        directory;         // empty: /dev/shm, or memory without a file system when that will not do
    int64_t capacity = 0;  // 0: 30% of the available memory, at most what the file system holds
    int64_t min_capacity = 0;
  };
  // kInvalid, kIo, kObjectStoreFull name the directory, what it has free, what is wanted, and the
  // remedy.
  static Result<std::unique_ptr<Arena>> create(const Options& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int64_t capacity() const { return capacity_; }
  int read_write_fd() const { return read_write_; }
  int read_only_fd() const { return read_only_; }
  const std::string& place() const {
    return place_;
  }  // for messages: "/dev/shm", "anonymous memory"

  // Makes sure the pages of [offset, offset+size) exist. kObjectStoreFull names the file system.
  Status reserve(int64_t offset, int64_t size);
  // The daemon's own mappings, for transfers. Only reserved ranges may be touched.
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
