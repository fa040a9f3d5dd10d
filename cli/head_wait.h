// For whoever follows a log while the head restarts: the processes that write it live on, so the
// head is waited for, as long as drivers and nodes do.
#pragma once

#include <string>

#include "common/base/status.h"

namespace rt::cli {

class HeadWait {
 public:
  // `address`: for people.
  explicit HeadWait(std::string address) : address_(std::move(address)) {}

  // A question failed with `why`. Success: ask again in kPauseUs; at the first time a line on
  // stderr says so. Else what to end with: the setting head_reconnect_timeout_ms is over, or `why`
  // is nothing that time mends, as a token that is refused.
  Status lost(const Error& why);
  // It answers, and has what was asked for.
  void found() { deadline_us_ = -1; }
  // Between lost() and found().
  bool waiting() const { return deadline_us_ >= 0; }

  static constexpr int64_t kPauseUs = 500'000;

 private:
  const std::string address_;
  int64_t limit_us_ = 0, deadline_us_ = -1;
};

}  // namespace rt::cli
