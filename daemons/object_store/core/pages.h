// Knows which pages of the arena exist. The file system may have fewer than the arena's capacity.
// Pages are asked for from the bottom up, one request at a time. A shortage is remembered; a second
// later the file system is asked again.
#pragma once

#include <algorithm>
#include <optional>

#include "common/base/clock.h"
#include "daemons/object_store/core/types.h"

namespace rt::store {

class Pages {
 public:
  explicit Pages(int64_t capacity) : capacity_(capacity) {}

  // Returns the offset up to which the caller must have pages reserved (answered() follows).
  // Returns nothing if the pages exist or a request is under way.
  std::optional<int64_t> ask(int64_t up_to) {
    up_to = std::min(up_to, capacity_);
    if (asked_ || reserved_ >= up_to) return std::nullopt;
    asked_ = true;
    return up_to;
  }
  // Notes that pages below `up_to` exist; an error says why there are not more.
  void answered(int64_t up_to, const Status& status, Now now) {
    reserved_ = std::max(reserved_, std::min(up_to, capacity_));
    asked_ = false;
    if (status) return;
    shortage_ = status.error();
    since_us_ = now.steady_us;
  }
  bool asked() const { return asked_; }
  // The pages below this offset exist.
  int64_t reserved() const { return reserved_; }
  bool exist(Range range) const { return range.end() <= reserved_; }

  // Returns why there are not more pages, or nothing while there may be more.
  const std::optional<Error>& shortage() const { return shortage_; }
  // The time from which forget_shortage() forgets the shortage. Valid only while there is one.
  int64_t retry_us() const { return since_us_ + kRetryAfterUs; }
  // Returns true if there was a shortage, and it is time to try again.
  bool forget_shortage(Now now) {
    if (!shortage_ || now.steady_us < retry_us()) return false;
    shortage_.reset();
    return true;
  }

 private:
  static constexpr int64_t kRetryAfterUs = 1'000'000;

  const int64_t capacity_;
  int64_t reserved_ = 0;
  bool asked_ = false;
  std::optional<Error> shortage_;
  int64_t since_us_ = 0;
};

}  // namespace rt::store
