#include "daemons/node_manager/process/reaper.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rt::node {

Reaper::Reaper(net::Loop& loop) : loop_(loop) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  RT_CHECK(signal_fd_ >= 0);
  watch_ = loop_.watch_readable(signal_fd_, [this] { collect(); });
}

Reaper::~Reaper() {
  watch_.reset();
  ::close(signal_fd_);
}

void Reaper::watch(int pid, OnExit on_exit) { watched_[pid] = std::move(on_exit); }

void Reaper::collect() {
  signalfd_siginfo info;
  while (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {}
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (before_reap_) before_reap_(ended.si_pid);
    int status = 0;
    int pid = ::waitpid(ended.si_pid, &status, 0);
    if (pid <= 0) continue;
    auto it = watched_.find(pid);
    if (it != watched_.end()) {
      OnExit on_exit = std::move(it->second);
      watched_.erase(it);
      on_exit(status);
    } else if (on_orphan_) {
      on_orphan_(pid, status);
    }
  }
}

}  // namespace rt::node
