// The arena in this process, mapped read-write to fill new objects and read-only for what is
// handed out. The client and all views share the mapping, so that a view stays valid after the
// client is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace rt::store {

class Mapping {
 public:
  // Maps both descriptors without taking ownership: the caller may close them afterwards.
  static Result<std::shared_ptr<Mapping>> map(int read_write_fd, int read_only_fd, int64_t size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool contains(int64_t offset, int64_t size) const {
    return offset >= 0 && size >= 0 && offset <= size_ && size <= size_ - offset;
  }
  MutableBytes writable(int64_t offset, int64_t size) const {
    return {writable_ + offset, static_cast<size_t>(size)};
  }
  Bytes readable(int64_t offset, int64_t size) const {
    return {readable_ + offset, static_cast<size_t>(size)};
  }

  // Call before a large copy to `to`: brings pages that this process has not touched yet into its
  // page table at once, which takes half the time of single faults. Any thread may call. Does
  // nothing for memory outside all mappings.
  static void prepare_for_copy(uint8_t* to, size_t n);

 private:
  Mapping() = default;
  void prepare(uint8_t* to, size_t n);

  uint8_t* writable_ = nullptr;
  const uint8_t* readable_ = nullptr;
  int64_t size_ = 0;
  // One flag for each kGranule of writable_. The array itself takes no memory until used.
  std::atomic<uint8_t>* touched_ = nullptr;
  size_t touched_bytes_ = 0;
};

}  // namespace rt::store
