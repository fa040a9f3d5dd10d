// Decides which thread reads the sockets. A thread that waits for something reads them itself (the
// leader). Any other thread that waits follows on a condition variable. The background thread takes
// over when nobody has read for a millisecond.
#include <pthread.h>

#include "worker/service/call_head.h"
#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {
namespace {

using std::chrono::microseconds;
constexpr int64_t kTickUs = 1000;
constexpr int kQuietTicks = 20;
constexpr int64_t kSignalCheckUs = 50'000;

}  // namespace

Waited Worker::Impl::wait_until(Lock& lock, int64_t deadline_us, const std::function<bool()>& done,
                                const std::function<bool()>& lends_cpu) {
  const bool in_task = t_current_task != nullptr && !options.is_driver;
  int64_t report_at =
      in_task && lends_cpu ? steady_now_us() + settings.blocked_report_after_us : -1;
  bool reported = false;
  // Signals are noticed here only when they interrupt the wait in the kernel. One that arrived
  // earlier, or in another thread, is known to the language's runtime only, so a driver returns to
  // it from time to time.
  const int64_t look_at = options.is_driver ? steady_now_us() + kSignalCheckUs : -1;
  Waited result = Waited::kDone;
  for (;;) {
    refs->drain_releases();
    if (done()) break;
    // The signal may have arrived while this thread was not in the kernel.
    const bool ends = in_task && signalled_to_end && !std::exchange(end_signal_delivered, true);
    if (ends || (in_task && t_current_task->take_interrupt())) {
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
      if (reported) set_blocked(true);
    }
    loop->flush_all();
    int64_t until = deadline_us;
    if (report_at >= 0 && (until < 0 || report_at < until)) until = report_at;
    if (look_at >= 0 && (until < 0 || look_at < until)) until = look_at;
    int64_t timeout = until < 0 ? -1 : std::max<int64_t>(0, until - now);
    if (pumping) {
      if (leader_is_background) loop->wake();
      ++followers;
      // Signals do not wake a condition variable, so followers return to look for them, too.
      int64_t pause = timeout < 0 ? kSignalCheckUs : std::min(timeout, kSignalCheckUs);
      bool woken = follower_cv.wait_for(lock, microseconds(pause)) == std::cv_status::no_timeout;
      --followers;
      if (!woken && pause == kSignalCheckUs && !done()) {
        result = Waited::kInterrupted;
        break;
      }
      continue;
    }
    pumping = true;
    net::PollLoop::Ready ready;
    lock.unlock();
    bool uninterrupted = loop->wait(ready, timeout);
    lock.lock();
    pumping = false;
    loop->dispatch(ready);
    after_dispatch();
    if (!uninterrupted && !done()) {
      result = Waited::kInterrupted;
      break;
    }
  }
  if (reported) set_blocked(false);
  leave_wait();
  return result;
}

Status await_answer(Worker::Impl& impl, Worker::Impl::Lock& lock,
                    const std::function<bool()>& there) {
  while (!there()) {
    const Waited waited = impl.wait_until(lock, -1, [&] { return there() || impl.stopping; });
    if (impl.stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
    if (waited != Waited::kInterrupted || !impl.options.interrupted) continue;
    lock.unlock();
    const bool ends = impl.options.interrupted();
    lock.lock();
    if (ends) return make_error(Code::kCancelled, "a signal ended the wait for the cluster's head");
  }
  return {};
}

void Worker::Impl::leave_wait() {
  if (followers > 0) follower_cv.notify_one();
  if (background_asleep.load(std::memory_order_relaxed)) {
    background_asleep.store(false, std::memory_order_relaxed);
    background_cv.notify_one();
  }
}

void Worker::Impl::poll_once(Lock&) {
  if (pumping) {
    loop->flush_all();
    return;
  }
  net::PollLoop::Ready ready;
  loop->wait(ready, 0);
  loop->dispatch(ready);
  after_dispatch();
}

void Worker::Impl::after_dispatch() {
  pump_serial.fetch_add(1, std::memory_order_relaxed);
  refs->drain_releases();
  frames->release();
  if (store) store->drain_releases();
  if (tick_at < 0 && submitter->needs_tick()) schedule_tick(settings.lease_idle_timeout_ms * 1000);
  loop->flush_all();
  if (followers > 0) follower_cv.notify_all();
}

void Worker::Impl::schedule_tick(int64_t delay_us) {
  int64_t at = steady_now_us() + delay_us;
  if (tick_at >= 0 && tick_at <= at) return;
  if (tick_at >= 0) loop->cancel(tick_timer);
  tick_at = at;
  tick_timer = loop->run_after(delay_us, [this] {
    tick_at = -1;
    int64_t now = steady_now_us();
    int64_t next = submitter->tick(now);
    if (next >= 0) schedule_tick(std::max<int64_t>(1000, next - now));
  });
}

void Worker::Impl::background() {
  pthread_setname_np(pthread_self(), "ray-io");
  Lock lock(mutex);
  int quiet = 0;
  while (!stopping) {
    if (!notices.empty()) notices.deliver(lock);
    uint64_t serial = pump_serial.load(std::memory_order_relaxed);
    if (pumping && ++quiet > kQuietTicks) {
      // Somebody is in wait(), so there is nothing to do until it leaves.
      background_asleep = true;
      background_cv.wait(lock,
                         [this] { return stopping || !background_asleep || !notices.empty(); });
      background_asleep = false;
      quiet = 0;
      continue;
    }
    background_cv.wait_for(lock, microseconds(kTickUs), [this] { return stopping.load(); });
    if (stopping) break;
    if (pump_serial.load(std::memory_order_relaxed) != serial) quiet = 0;
    if (pumping || pump_serial.load(std::memory_order_relaxed) != serial) continue;
    quiet = 0;
    // Nobody has read for a tick: reads until somebody else wants to.
    while (!stopping && !pumping && followers == 0) {
      pumping = leader_is_background = true;
      refs->drain_releases();
      loop->flush_all();
      net::PollLoop::Ready ready;
      lock.unlock();
      loop->wait(ready, -1);
      lock.lock();
      pumping = leader_is_background = false;
      loop->dispatch(ready);
      after_dispatch();
      if (!notices.empty()) notices.deliver(lock);
    }
    if (followers > 0) follower_cv.notify_one();
    // Lets the follower get the lock before the next look.
    background_cv.wait_for(lock, microseconds(kTickUs), [this] { return stopping.load(); });
  }
  // Delivers the last lines to a driver that leaves at once.
  if (!notices.empty()) notices.deliver(lock);
}

}  // namespace rt::worker
