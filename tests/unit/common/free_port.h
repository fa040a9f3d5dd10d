// Ports for a test's own listeners, which no other test that runs at the same time takes: for tests
// in C++ what tests/support/ports.py is for those in Python.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/net/address.h"

namespace rt::test {

// A port of 127.0.0.1 on which nobody listens. The range lies above that of ports.py and below the
// one from which the kernel takes ports for connections (32768 to 60999): a port that is free stays
// free until it is used, also between a server's end and its next start. Each process takes from a
// part of its own.
inline int free_port() {
  constexpr int kFirst = 31'000, kPerProcess = 32, kProcesses = 55;
  static int next = 0;
  const int first = kFirst + (::getpid() % kProcesses) * kPerProcess;
  for (int i = 0; i < kPerProcess; ++i) {
    const int port = first + next++ % kPerProcess;
    const Result<int> probe = net::listen_on(net::Address::tcp("127.0.0.1", port));
    if (!probe) continue;
    ::close(*probe);
    return port;
  }
  ADD_FAILURE() << "no port is free";
  return 0;
}

}  // namespace rt::test
