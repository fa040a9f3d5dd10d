// The signals that end a command which has to clean up first.
#pragma once

#include <signal.h>

#include <initializer_list>

namespace rt::cli {

// SIGTERM, SIGINT and SIGHUP, without those that this process ignores. `nohup` ignores SIGHUP, and
// a shell without job control SIGINT, for the commands that they start. Such a signal must not be
// watched: once it is blocked, a signalfd reports it although it is ignored.
inline sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

}  // namespace rt::cli
