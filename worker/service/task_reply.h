// The record of a task in a frame of replies (worker/core/wire.h), and the error in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "worker/core/wire.h"

namespace rt::worker {

class TaskReply {
 public:
  // `count` values follow, which the caller appends to bytes().
  void begin(uint32_t seq, wire::TaskStatus status, int64_t duration_us, size_t count) {
    begun_ = true;
    bytes_.clear();
    wire::Writer(bytes_).fields(seq, status,
                                static_cast<uint32_t>(std::min<int64_t>(duration_us, UINT32_MAX)),
                                static_cast<uint32_t>(count));
  }
  bool begun() const { return begun_; }
  std::string& bytes() { return bytes_; }

  // The task has failed with this encoded error.
  void set_error(std::string error) {
    failed_ = true;
    error_ = std::move(error);
  }
  // The same, and the error is the only value of the reply.
  void fail(std::string error) {
    set_error(std::move(error));
    wire::Writer(bytes_).inline_value(error_);
  }
  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }

  // Sets the flag in the status byte, which follows the sequence number.
  void mark_leaving() {
    bytes_[sizeof(uint32_t)] = static_cast<char>(bytes_[sizeof(uint32_t)] | wire::kLeaving);
  }

 private:
  std::string bytes_, error_;
  bool begun_ = false, failed_ = false;
};

}  // namespace rt::worker
