#include "cli/commands/supervise.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "cli/terminal/ending_signals.h"
#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/base/readable.h"
#include "launch/daemon/notify.h"

namespace rt::cli {
namespace {

constexpr int64_t kGraceUs = 16'000'000;
constexpr int64_t kRestGraceUs = 3'000'000;

bool is_orderly(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGTERM;
  int code = WEXITSTATUS(status);
  return code == 0 || code == SIGTERM || code == 128 + SIGTERM;
}

std::string describe(int status) {
  return WIFSIGNALED(status) ? fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                                           strsignal(WTERMSIG(status)))
                             : fmt::format("exited with code {}", WEXITSTATUS(status));
}

void end_node(const launch::StartedNode& node, int64_t grace_us) {
  launch::stop_processes(node.processes, grace_us);
  launch::forget_node(node);
}

// Ends this process by the signal itself, so that shells and service managers see the real cause.
[[noreturn]] void end_by(int number) {
  sigset_t set = ending_signals();
  ::signal(number, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  std::_Exit(128 + number);
}

}  // namespace

void hold_signals() {
  sigset_t set = ending_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

int supervise(const launch::StartedNode& node) {
  const std::string record = node.session_dir + "/logs/ray_process_exit.log";
  print(
      "\n--block: this command stays until the node ends; exits of its processes are recorded in "
      "{}.\n",
      record);
  std::fflush(stdout);
  daemon::Notifier notifier;  // Used when systemd (Type=notify) runs this command itself.
  notifier.ready(fmt::format("Node of the cluster at {}", node.head_address));
  const int keep_alive_ms =
      notifier.keep_alive_us() > 0 ? static_cast<int>(notifier.keep_alive_us() / 1000) : -1;
  sigset_t set = ending_signals();
  int signals = signalfd(-1, &set, SFD_CLOEXEC);
  std::vector<pollfd> polled = {{signals, POLLIN, 0}};
  for (const auto& process : node.processes)
    polled.push_back({static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)), POLLIN, 0});
  size_t running = node.processes.size();
  while (running > 0) {
    notifier.alive();
    poll(polled.data(), polled.size(), keep_alive_ms);
    if (polled[0].revents != 0) {
      signalfd_siginfo info;
      if (read(signals, &info, sizeof(info)) != sizeof(info)) continue;
      print("Signal {}: the node ends.\n", info.ssi_signo);
      notifier.stopping(fmt::format("received signal {}", info.ssi_signo));
      std::fflush(stdout);
      end_node(node, kGraceUs);
      end_by(static_cast<int>(info.ssi_signo));
    }
    // A daemon ends when another one of its node was killed. On a busy machine both ends are seen
    // together, and the one that was killed is the cause.
    const launch::StartedProcess* cause = nullptr;
    int cause_status = 0;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const auto& process = node.processes[i - 1];
      int status = 0;
      if (waitpid(process.pid, &status, WNOHANG) != process.pid) continue;
      close(std::exchange(polled[i].fd, -1));
      --running;
      std::ofstream(record, std::ios::app)
          << local_time(wall_now_us() / 1000) << " " << process.name << " (pid " << process.pid
          << ") " << describe(status) << "\n";
      if (is_orderly(status)) continue;
      if (cause && !(WIFSIGNALED(status) && !WIFSIGNALED(cause_status))) continue;
      cause = &process;
      cause_status = status;
    }
    if (cause) {
      print(stderr, "Error: {} {}. {}\nThe rest of the node ends; logs: {}/logs\n", cause->name,
            describe(cause_status), launch::last_words(node, cause->name), node.session_dir);
      end_node(node, kRestGraceUs);
      return 1;
    }
  }
  launch::forget_node(node);
  return 0;
}

}  // namespace rt::cli
