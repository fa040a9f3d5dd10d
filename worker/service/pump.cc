#include "worker/service/pump.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "worker/service/objects.h"
#include "worker/session_over.h"

namespace rt::worker {
namespace {

using std::chrono::microseconds;
constexpr int64_t kTickUs = 1000;
constexpr int kQuietTicks = 20;
constexpr int64_t kSignalCheckUs = 50'000;

}  // namespace

Waited Pump::wait_until(WorkerLock& lock, int64_t deadline_us, const std::function<bool()>& done,
                        const std::function<bool()>& lends_cpu) {
  TaskProgress* const task = parts_.shared.options.is_driver ? nullptr : hooks_.current_task();
  int64_t report_at =
      task && lends_cpu ? steady_now_us() + parts_.shared.settings().blocked_report_after_us : -1;
  bool reported = false;
  // Signals are noticed here only when they interrupt the wait in the kernel. One that arrived
  // earlier, or in another thread, is known to the language's runtime only, so a driver returns to
  // it from time to time.
  const int64_t look_at = parts_.shared.options.is_driver ? steady_now_us() + kSignalCheckUs : -1;
  Waited result = Waited::kDone;
  for (;;) {
    parts_.objects.refs().drain_releases();
    if (done()) break;
    // The signal may have arrived while this thread was not in the kernel.
    if (task && (hooks_.take_signal() || task->take_interrupt())) {
      result = Waited::kInterrupted;
      break;
    }
    int64_t now = steady_now_us();
    if (deadline_us >= 0 && now >= deadline_us) {
      result = Waited::kTimeout;
      break;
    }
    if (look_at >= 0 && now >= look_at) {
      result = Waited::kInterrupted;
      break;
    }
    if (report_at >= 0 && now >= report_at) {
      report_at = -1;
      reported = lends_cpu();
      if (reported) hooks_.set_blocked(true);
    }
    loop_.flush_all();
    int64_t until = deadline_us;
    if (report_at >= 0 && (until < 0 || report_at < until)) until = report_at;
    if (look_at >= 0 && (until < 0 || look_at < until)) until = look_at;
    int64_t timeout = until < 0 ? -1 : std::max<int64_t>(0, until - now);
    if (reading_) {
      if (leader_is_background_) loop_.wake();
      ++followers_;
      // Signals do not wake a condition variable, so followers return to look for them, too.
      int64_t pause = timeout < 0 ? kSignalCheckUs : std::min(timeout, kSignalCheckUs);
      bool woken = follower_cv_.wait_for(lock, microseconds(pause));
      --followers_;
      if (!woken && pause == kSignalCheckUs && !done()) {
        result = Waited::kInterrupted;
        break;
      }
      continue;
    }
    reading_ = true;
    net::PollLoop::Ready ready;
    lock.unlock();
    bool uninterrupted = loop_.wait(ready, timeout);
    lock.lock();
    reading_ = false;
    loop_.dispatch(ready);
    after_dispatch();
    if (!uninterrupted && !done()) {
      result = Waited::kInterrupted;
      break;
    }
  }
  if (reported) hooks_.set_blocked(false);
  leave_wait();
  return result;
}

Status Pump::await_answer(WorkerLock& lock, const std::function<bool()>& there,
                          int64_t deadline_us) {
  auto is_over = [&] { return there() || parts_.shared.stopping; };
  while (!there()) {
    const Waited waited = wait_until(lock, deadline_us, is_over);
    if (parts_.shared.stopping) return session_over();
    if (waited == Waited::kTimeout)
      return make_error(Code::kTimeout, "the cluster did not answer in time");
    if (waited != Waited::kInterrupted || !parts_.shared.options.interrupted) continue;
    lock.unlock();
    const bool ends = parts_.shared.options.interrupted();
    lock.lock();
    if (ends) return make_error(Code::kCancelled, "a signal ended the wait for the cluster");
  }
  return {};
}

void Pump::leave_wait() {
  if (followers_ > 0) follower_cv_.notify_one();
  if (background_asleep_) {
    background_asleep_ = false;
    background_cv_.notify_one();
  }
}

void Pump::poll_once() {
  if (reading_) {
    loop_.flush_all();
    return;
  }
  net::PollLoop::Ready ready;
  loop_.wait(ready, 0);
  loop_.dispatch(ready);
  after_dispatch();
}

void Pump::after_dispatch() {
  ++turns_;
  parts_.objects.refs().drain_releases();
  hooks_.turned();
  if (parts_.objects.store()) parts_.objects.store()->drain_releases();
  loop_.flush_all();
  wake_followers();
}

void Pump::set_flush_timer(int64_t delay_us) {
  flush_timer_set_ = true;
  // The loop calls flush_all() after it has dispatched a timer.
  loop_.run_after(delay_us, [this] {
    assert_locked();
    flush_timer_set_ = false;
  });
}

Status Pump::start() {
  RT_ASSIGN(background_thread_, start_thread([this] { background(); }));
  return {};
}

void Pump::stop() {
  loop_.wake();
  background_cv_.notify_all();
  follower_cv_.notify_all();
}

void Pump::join() {
  if (background_thread_.joinable()) background_thread_.join();
}

void Pump::wake_background() {
  background_cv_.notify_one();
  if (leader_is_background_) loop_.wake();
}

void Pump::background() {
  pthread_setname_np(pthread_self(), "ray-io");
  WorkerLock lock(parts_.shared.mutex);
  int quiet = 0;
  while (!parts_.shared.stopping) {
    parts_.notices.deliver(lock);
    uint64_t serial = turns_;
    if (reading_ && ++quiet > kQuietTicks) {
      // Somebody is in wait(), so there is nothing to do until it leaves.
      background_asleep_ = true;
      background_cv_.wait(lock, [this] {
        assert_locked();
        return parts_.shared.stopping || !background_asleep_ || !parts_.notices.empty();
      });
      background_asleep_ = false;
      quiet = 0;
      continue;
    }
    background_cv_.wait_for(lock, microseconds(kTickUs),
                            [this] { return parts_.shared.stopping.load(); });
    if (parts_.shared.stopping) break;
    if (turns_ != serial) quiet = 0;
    if (reading_ || turns_ != serial) continue;
    quiet = 0;
    // Nobody has read for a tick: reads until somebody else wants to.
    while (!parts_.shared.stopping && !reading_ && followers_ == 0) {
      reading_ = leader_is_background_ = true;
      parts_.objects.refs().drain_releases();
      loop_.flush_all();
      net::PollLoop::Ready ready;
      lock.unlock();
      loop_.wait(ready, -1);
      lock.lock();
      reading_ = leader_is_background_ = false;
      loop_.dispatch(ready);
      after_dispatch();
      parts_.notices.deliver(lock);
    }
    if (followers_ > 0) follower_cv_.notify_one();
    // Lets the follower get the lock before the next look.
    background_cv_.wait_for(lock, microseconds(kTickUs),
                            [this] { return parts_.shared.stopping.load(); });
  }
  // Delivers the last lines to a driver that leaves at once.
  parts_.notices.deliver(lock);
}

}  // namespace rt::worker
