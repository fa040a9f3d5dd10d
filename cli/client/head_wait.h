// Decides how long a command that follows a log waits for a head that was lost. The processes that
// write the log survive a restart of the head, so the command waits as long as drivers and nodes
// do: head_reconnect_timeout_ms.
#pragma once

#include <string>

#include "common/base/status.h"

namespace rt::cli {

// Keeps the deadline of one outage at a time; does no I/O but a line on stderr. Not thread-safe.
class HeadWait {
 public:
  // `address` is only shown in messages.
  explicit HeadWait(std::string address) : address_(std::move(address)) {}

  // Reports that a request failed with `why`. Success means: try again after kPauseUs; the first
  // call of an outage also says so on stderr. The error returned otherwise is final: the setting
  // head_reconnect_timeout_ms has passed, or waiting cannot help, as with a refused token.
  Status lost(const Error& why);
  // Ends the outage: the head answers and has what was asked for.
  void found() { deadline_us_ = -1; }
  // True between lost() and found().
  bool waiting() const { return deadline_us_ >= 0; }

  static constexpr int64_t kPauseUs = 500'000;

 private:
  const std::string address_;
  int64_t limit_us_ = 0, deadline_us_ = -1;
};

}  // namespace rt::cli
