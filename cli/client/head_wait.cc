#include "cli/client/head_wait.h"

#include <fmt/core.h>

#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/config/settings.h"

namespace rt::cli {

Status HeadWait::lost(const Error& why) {
  if (!may_recover(why.code)) return why;
  const int64_t now_us = steady_now_us();
  if (!waiting()) {
    RT_ASSIGN(Settings settings, load_settings("", {}));
    limit_us_ = settings.head_reconnect_timeout_ms * 1000;
    deadline_us_ = now_us + limit_us_;
    RT_TRY(flush_output());
    print(stderr, "Lost the head at {} ({}): waiting up to {:g} s for it to come back.\n", address_,
          why.message, static_cast<double>(limit_us_) / 1e6);
    return {};
  }
  if (now_us < deadline_us_) return {};
  return make_error(
      Code::kUnavailable,
      fmt::format("{:g} s after the head at {} was lost (setting head_reconnect_timeout_ms): {}",
                  static_cast<double>(limit_us_) / 1e6, address_, why.message));
}

}  // namespace rt::cli
