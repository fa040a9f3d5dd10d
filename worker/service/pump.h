// Which thread reads the sockets, and who waits for what comes.
//
// A thread that waits for something reads them itself (the leader). Any other thread that waits
// follows on a condition variable. The background thread takes over when nobody has read for a
// millisecond. It also delivers the notices, because the program's own code prints them.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "common/base/status.h"
#include "worker/service/lock.h"
#include "worker/service/notices.h"
#include "worker/service/shared.h"
#include "worker/service/task_progress.h"

namespace rt::worker {

class Objects;

// The usual `lends_cpu` of Pump::wait_until().
constexpr auto kLendsCpu = [] { return true; };

class Pump {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Objects& objects;
    Notices& notices;
  };
  struct Hooks {
    // A turn of the loop has ended: everything that came with it was handed to those it is for.
    std::function<void()> turned;
    // The task that the calling thread executes in this worker; null when there is none.
    std::function<TaskProgress*()> current_task;
    // True once after a signal that ends this process.
    std::function<bool()> take_signal;
    // A thread that executes a task begins or ends to wait for others, which get its CPU.
    std::function<void(bool blocked)> set_blocked;
  };
  Pump(const Parts& parts, Hooks hooks)
      : parts_(parts), hooks_(std::move(hooks)), loop_(parts.shared.loop) {}

  // Starts the background thread.
  Status start() REQUIRES(worker_mutex);
  // Wakes everybody, because the session is over; join() waits for the background thread.
  void stop() REQUIRES(worker_mutex);
  void join() EXCLUDES(worker_mutex);

  // Reads sockets until `done()` holds, the deadline passes or a signal arrives, or may have
  // arrived: in a driver this is so after 50 ms, and the caller waits anew. When a task has
  // waited for longer than blocked_report_after_us, `lends_cpu` decides whether others get its CPU
  // meanwhile. They should where another task may have to run first. An answer of a daemon or of
  // the local store comes soon, and a CPU that was lent for it would be used twice right
  // afterwards.
  Waited wait_until(WorkerLock& lock, int64_t deadline_us, const std::function<bool()>& done,
                    const std::function<bool()>& lends_cpu = nullptr) REQUIRES(worker_mutex);
  // Waits for an answer of the cluster: until `there()` holds. Fails when Ray is shut down, with
  // kTimeout at the deadline, if there is one, and with kCancelled when the language ends the wait
  // because of a signal (Options::interrupted).
  Status await_answer(WorkerLock& lock, const std::function<bool()>& there,
                      int64_t deadline_us = -1) REQUIRES(worker_mutex);
  // Called after each submission. A thread that only submits reads what has come, too.
  void submitted() REQUIRES(worker_mutex) {
    constexpr uint32_t kSubmitsPerPoll = 64;
    if (++submits_since_poll_ >= kSubmitsPerPoll) {
      submits_since_poll_ = 0;
      poll_once();
    }
    if (background_asleep_) leave_wait();
  }
  // Lets another thread read, because this one does not.
  void leave_wait() REQUIRES(worker_mutex);

  // Flushes all connections after `delay_us`, or before. A burst of messages shares the write.
  void flush_within(int64_t delay_us) REQUIRES(worker_mutex) {
    if (!flush_timer_set_) set_flush_timer(delay_us);
  }

  // The thread that reads must look again whether what it waits for is there. It needs no call
  // after run_after(), which wakes it by itself.
  void wake_reader() REQUIRES(worker_mutex) {
    if (reading_) loop_.wake();
  }
  // Something has changed that followers may wait for, and that did not come from a socket.
  void wake_followers() REQUIRES(worker_mutex) {
    if (followers_ > 0) follower_cv_.notify_all();
  }
  // There are notices to deliver.
  void wake_background() REQUIRES(worker_mutex);

 private:
  // Reads what is there without waiting, unless another thread reads.
  void poll_once() REQUIRES(worker_mutex);
  // Drains releases, flushes connections, wakes the threads that follow the reader.
  void after_dispatch() REQUIRES(worker_mutex);
  void set_flush_timer(int64_t delay_us) REQUIRES(worker_mutex);
  void background() EXCLUDES(worker_mutex);

  const Parts parts_;
  const Hooks hooks_;
  net::PollLoop& loop_;
  bool reading_ GUARDED_BY(worker_mutex) = false;  // A thread is in loop_.wait().
  bool leader_is_background_ GUARDED_BY(worker_mutex) = false;
  int followers_ GUARDED_BY(worker_mutex) = 0;
  WorkerCondVar follower_cv_, background_cv_;
  uint64_t turns_ GUARDED_BY(worker_mutex) = 0;
  bool background_asleep_ GUARDED_BY(worker_mutex) = false;
  std::thread background_thread_;
  bool flush_timer_set_ GUARDED_BY(worker_mutex) = false;
  uint32_t submits_since_poll_ GUARDED_BY(worker_mutex) = 0;
};

}  // namespace rt::worker
