// Tracks the chunks of an object that is being fetched: which have arrived, which are requested,
// which is next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemons/object_store/core/types.h"

namespace rt::store {

class ChunkMap {
 public:
  ChunkMap() = default;
  ChunkMap(int64_t size, int64_t chunk)
      : size_(size),
        chunk_(chunk),
        states_(static_cast<size_t>((size + chunk - 1) / chunk), State::kMissing) {}

  // Returns the first chunk that is not requested and marks it as requested, or nothing if there
  // is none.
  std::optional<size_t> ask_next() {
    while (next_ < states_.size() && states_[next_] != State::kMissing) next_++;
    if (next_ == states_.size()) return std::nullopt;
    states_[next_] = State::kAsked;
    return next_++;
  }
  void on_received(size_t chunk) {
    RT_CHECK(states_[chunk] == State::kAsked);
    states_[chunk] = State::kReceived;
    received_++;
  }
  void on_failed(size_t chunk) {
    RT_CHECK(states_[chunk] == State::kAsked);
    states_[chunk] = State::kMissing;
    next_ = std::min(next_, chunk);
  }
  Range range_of(size_t chunk) const {
    int64_t offset = static_cast<int64_t>(chunk) * chunk_;
    return {offset, std::min(chunk_, size_ - offset)};
  }
  bool is_complete() const { return received_ == states_.size(); }
  // Returns whether all bytes of `range`, which must lie within the object, have arrived.
  bool has(Range range) const {
    if (range.size == 0) return true;
    for (auto i = static_cast<size_t>(range.offset / chunk_);
         i <= static_cast<size_t>((range.end() - 1) / chunk_); i++) {
      if (states_[i] != State::kReceived) return false;
    }
    return true;
  }
  int64_t size() const { return size_; }

 private:
  enum class State : uint8_t { kMissing, kAsked, kReceived };
  int64_t size_ = 0;
  int64_t chunk_ = 1;
  std::vector<State> states_;
  size_t next_ = 0;
  size_t received_ = 0;
};

}  // namespace rt::store
