// The process around a daemon's loop: log, signals, lifeline, exit code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/config/settings.h"
#include "common/net/asio_loop.h"
#include "launch/daemon/flags.h"

namespace rt::daemon {

// Makes or checks the session directory of a daemon, and the directory `below` it if that is not
// empty. kIo when another user owns one of them, because that one could replace logs and sockets.
Status claim_session(const std::string& session_dir, const std::string& below);

// Starts the log: to --log-file, else to SESSION/logs/<component>.log, else to stderr. Its first
// lines name misspelt settings in the environment. Fails as claim_session() does.
Status start_log(const Flags& flags, const Settings& settings, const std::string& component);

// Calls `end` with the reason when SIGTERM or SIGINT arrives, when the lifeline reaches end of file
// because the process at its other end has ended, and when the starter ends before it lets this
// daemon go (launch::StarterLine). Create one per loop, and keep it while the loop runs.
class EndWatch {
 public:
  EndWatch(net::AsioLoop& loop, const Flags& flags,
           std::function<void(const std::string& why)> end);

 private:
  void watch_lifeline(net::AsioLoop& loop, int fd);
  void watch_starter(net::AsioLoop& loop, int fd);

  std::function<void(const std::string& why)> end_;
  std::unique_ptr<net::FdWatch> lifeline_, starter_;
};

// These three functions are parts of run_main().
void ignore_signals();
// 2 when somebody must correct something before another start can help, so that the systemd units
// do not restart the daemon; else 1.
int exit_code_of(const Error& error);
// Writes the error to the log and to stderr, and returns its exit code.
int report_failure(const char* program, const Error& error);

// The whole of main(). Returns 0, or exit_code_of() the failure. `parse` returns nullopt when it
// has answered --help.
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
