#include "launch/daemon/process.h"

#include <errno.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "common/base/log.h"
#include "common/base/trusted_directory.h"
#include "common/config/misspelt_variables.h"

namespace rt::daemon {
namespace {

bool g_logs_to_file = false;  // Global, like the log.

}  // namespace

Status claim_session(const std::string& session_dir, const std::string& below) {
  constexpr DirectoryUse kUse = {"the session's files", "choose another place with --session-dir"};
  RT_TRY(claim_directory(session_dir, kUse));
  return below.empty() ? Status() : claim_directory(session_dir + "/" + below, kUse);
}

Status start_log(const Flags& flags, const Settings& settings, const std::string& component) {
  LogOptions log;
  log.component = component;
  log.level = parse_log_level(settings.log_level, LogLevel::kInfo);
  log.file = flags.log_file;
  if (log.file.empty() && !flags.session_dir.empty()) {
    RT_TRY(claim_session(flags.session_dir, "logs"));
    log.file = fmt::format("{}/logs/{}.log", flags.session_dir, component);
    log.own_file_only = true;
  }
  log.max_file_bytes = static_cast<size_t>(settings.log_rotation_bytes);
  init_log(log);
  g_logs_to_file = !log.file.empty();
  for (const std::string& sentence : misspelt_variables()) RT_WARN("{}", sentence);
  return {};
}

EndWatch::EndWatch(net::AsioLoop& loop, const Flags& flags,
                   std::function<void(const std::string& why)> end)
    : end_(std::move(end)) {
  loop.on_signals({SIGTERM, SIGINT},
                  [this](int signal) { end_(fmt::format("received signal {}", signal)); });
  if (flags.lifeline_fd >= 0) watch_lifeline(loop, flags.lifeline_fd);
  if (flags.starter_fd >= 0) watch_starter(loop, flags.starter_fd);
}

void EndWatch::watch_lifeline(net::AsioLoop& loop, int fd) {
  lifeline_ = loop.watch_readable(fd, [this, &loop, fd] {
    char ignored[256];
    ssize_t n = ::read(fd, ignored, sizeof(ignored));
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    // This is posted, because the object must not be destroyed inside its own callback.
    loop.post([this] { lifeline_.reset(); });
    end_("the process that started this cluster has ended");
  });
}

// The byte stays in the pipe, because all daemons of the node share it. A daemon that ends keeps
// the descriptor open: `rayctl stop` knows by it that the daemon still lives.
void EndWatch::watch_starter(net::AsioLoop& loop, int fd) {
  starter_ = loop.watch_readable(fd, [this, &loop, fd] {
    pollfd line{fd, POLLIN, 0};
    if (::poll(&line, 1, 0) <= 0) return;
    const bool let_go = (line.revents & POLLIN) != 0;
    loop.post([this, fd, let_go] {
      if (std::exchange(starter_, nullptr) && let_go) ::close(fd);
    });
    if (!let_go) end_("the command that started this node ended before the node was recorded");
  });
}

void ignore_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  // A write beyond the file size limit fails like one to a full disk.
  ::signal(SIGXFSZ, SIG_IGN);
}

int exit_code_of(const Error& error) {
  switch (error.code) {
    case Code::kInvalid:
    case Code::kUnauthenticated:
    case Code::kWrongVersion: return 2;
    default: return 1;
  }
}

int report_failure(const char* program, const Error& error) {
  if (g_logs_to_file) RT_ERROR("{}", error.message);
  flush_log();
  std::fprintf(stderr, "%s: %s\n", program, error.message.c_str());
  return exit_code_of(error);
}

}  // namespace rt::daemon
