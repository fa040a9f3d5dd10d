// A daemon's process around its loop: log, signals, lifeline, exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/config/settings.h"
#include "common/daemon/flags.h"
#include "common/net/asio_loop.h"

namespace rt::daemon {

// To --log-file, else SESSION/logs/<component>.log, else stderr.
void start_log(const Flags& flags, const Settings& settings, const std::string& component);

// Calls `end` with the reason when SIGTERM or SIGINT comes, and when the process at the other end
// of the lifeline has ended. Lives as long as the loop runs; one for each loop.
class EndWatch {
 public:
  EndWatch(net::AsioLoop& loop, int lifeline_fd, std::function<void(const std::string& why)> end);

 private:
  std::unique_ptr<net::FdWatch> lifeline_;
};

// The rest of run_main().
void ignore_signals();
// 2 for what somebody must correct before another start can help: the units do not restart after
// it. Else 1.
int exit_code_of(const Error& error);
int report_failure(const char* program, const Error& error);

// The whole of main(): 0, or exit_code_of() the failure. `parse` returns nothing when --help was
// answered.
template <class OwnFlags>
int run_main(const char* program, int argc, char** argv,
             Result<std::optional<OwnFlags>> (*parse)(int, char**),
             Status (*run)(const OwnFlags&)) {
  ignore_signals();
  Result<std::optional<OwnFlags>> flags = parse(argc, argv);
  if (!flags) return report_failure(program, flags.error());
  if (!*flags) return 0;
  Status done = run(**flags);
  return done ? 0 : report_failure(program, done.error());
}

}  // namespace rt::daemon
