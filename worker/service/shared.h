// The few things that all parts of a worker share: the mutex under which they live, the loop that
// reads for them, who this process is, and whether its session is over.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "common/net/poll_loop.h"
#include "worker/service/lock.h"
#include "worker/service/self.h"
#include "worker/worker.h"

namespace rt::worker {

// Outlives all parts. Only the start of the process and adopt_job() in startup.cc change `options`
// and `context`, with the mutex held.
struct Shared {
  explicit Shared(Options the_options) : options(std::move(the_options)), self(options, context) {}

  const Settings& settings() const { return options.settings; }
  const std::string& runtime_env() const {
    return options.is_driver ? options.job_config.runtime_env() : options.runtime_env;
  }

  Options options;
  Context context;
  Self self;
  WorkerMutex mutex;
  // Its callbacks run with the mutex held. One thread at a time waits in it; see Pump.
  net::PollLoop loop{net::PollLoop::Waiters::kOne};
  // The session is over: set once, with the mutex, and read by any thread.
  std::atomic<bool> stopping{false};
};

}  // namespace rt::worker
