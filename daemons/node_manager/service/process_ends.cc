#include "daemons/node_manager/service/process_ends.h"

#include <signal.h>

#include "common/base/clock.h"

namespace rt::node {
namespace {
constexpr int64_t kPollUs = 2'000;
constexpr int64_t kKilledGraceUs = 500'000;
}  // namespace

void ProcessEnds::ask_all() {
  jobs_.stop_all(SIGTERM);
  starter_.signal_all(SIGTERM);
}

void ProcessEnds::wait(int64_t grace_us) {
  deadline_us_ = steady_now_us() + grace_us;
  look();
}

void ProcessEnds::look() {
  if (!starter_.has_processes() && !jobs_.running() && starter_.end_servers()) return on_ended_();
  if (steady_now_us() > deadline_us_) {
    if (killed_) return on_ended_();
    killed_ = true;
    jobs_.stop_all(SIGKILL);
    starter_.signal_all(SIGKILL);
    deadline_us_ = steady_now_us() + kKilledGraceUs;
  }
  alarm_.ring_by(steady_now_us() + kPollUs);
}

}  // namespace rt::node
