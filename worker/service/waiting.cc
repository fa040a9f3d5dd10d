#include "worker/service/waiting.h"

#include <utility>

namespace rt::worker {
namespace {

constexpr int64_t kReportAfterUs = 500'000;
// A call that has been handed over for less time is about to start.
constexpr int64_t kCallWaitsAfterUs = kReportAfterUs / 2;

}  // namespace

void WaitingReport::send() {
  const int64_t for_actors = hooks_.held_back() + hooks_.waiting_for_turn(kCallWaitsAfterUs);
  if (!hooks_.tell(tasks_.awaiting_arguments(), for_actors)) return;
  if (for_actors == 0) return watch_turns();
  if (std::exchange(send_timer_set_, true)) return;
  loop_.run_after(kReportAfterUs, [this] {
    assert_locked();
    send_timer_set_ = false;
    send();
  });
}

void WaitingReport::watch_turns() {
  if (turns_timer_set_ || send_timer_set_ || hooks_.waiting_for_turn(0) == 0) return;
  turns_timer_set_ = true;
  loop_.run_after(kReportAfterUs, [this] {
    assert_locked();
    turns_timer_set_ = false;
    hooks_.waiting_for_turn(kCallWaitsAfterUs) > 0 ? send() : watch_turns();
  });
}

void WaitingReport::arguments_changed() {
  if (!tasks_.wants_report()) return;
  loop_.run_after(kReportAfterUs, [this] {
    assert_locked();
    if (tasks_.take_report()) send();
  });
}

void WaitingReport::calls_held_back() {
  loop_.run_after(kReportAfterUs, [this] {
    assert_locked();
    send();
  });
}

}  // namespace rt::worker
