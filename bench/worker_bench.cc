// Measures the hot path without a language: round trips and throughput of the worker library, with
// the driver and its workers in one process.
#include <cstdio>

#include "tests/support/worker_pair.h"

using namespace rt;

int main(int argc, char** argv) {
  int workers = argc > 1 ? atoi(argv[1]) : 1;
  test::WorkerPair pair(workers, [](worker::ExecutingTask&) { return std::string("ok"); });
  auto rate = [](const char* name, int n, auto&& body) {
    int64_t start = steady_now_us();
    body(n);
    double us = static_cast<double>(steady_now_us() - start);
    std::printf("%-28s %10.0f /s  %8.3f us each\n", name, n * 1e6 / us, us / n);
  };
  for (int round = 0; round < 3; ++round) {
    rate("tasks sync", 5000, [&](int n) {
      for (int i = 0; i < n; ++i) pair.get(pair.call(""));
    });
    rate("tasks async, 1000 a batch", 200000, [&](int n) {
      for (int i = 0; i < n / 1000; ++i) {
        std::vector<worker::Ref> refs;
        for (int k = 0; k < 1000; ++k) refs.push_back(pair.call(""));
        test::wait_all(*pair.driver, refs);
      }
    });
    rate("put small", 500000, [&](int n) {
      worker::ValueParts parts;
      parts.kind = worker::ValueKind::kNone;
      for (int i = 0; i < n; ++i) (void)pair.driver->put(parts).value();
    });
  }
}
