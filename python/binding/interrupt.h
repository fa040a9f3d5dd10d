// Interrupts the user code of one thread for a cancellation, by a signal whose Python handler
// raises KeyboardInterrupt (ray/_private/worker_main.py). The handler runs some time after the
// signal, when the code may be over, or may be importing a module; so it asks here whether to
// raise. For any thread.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace rt::python {

class Interrupt {
 public:
  explicit Interrupt(pthread_t thread) : thread_(thread) {}

  // The thread enters the code of this task. A cancellation that came before does not interrupt it:
  // the caller looks whether the task is cancelled afterwards.
  void enter(const TaskId& task) {
    MutexLock lock(mutex_);
    running_ = task;
  }
  // An interrupt that is signalled later comes too late.
  void leave() {
    MutexLock lock(mutex_);
    running_ = TaskId::nil();
    wanted_ = false;
  }

  // Interrupts the thread if it is in the code of this task.
  void send(const TaskId& task) {
    MutexLock lock(mutex_);
    if (running_ != task) return;
    wanted_ = true;
    pthread_kill(thread_, SIGINT);
  }
  // Repeats the signal if the thread has not noticed it yet, and returns whether it did.
  bool repeat(const TaskId& task) {
    MutexLock lock(mutex_);
    if (running_ != task || !wanted_) return false;
    pthread_kill(thread_, SIGINT);
    return true;
  }

  // For the signal's handler: returns whether the thread is to be interrupted, once, and by which
  // task's cancellation; nil if not.
  TaskId take() {
    MutexLock lock(mutex_);
    return std::exchange(wanted_, false) ? running_ : TaskId::nil();
  }
  // Undoes take(): the interrupt comes again later.
  void postpone() {
    MutexLock lock(mutex_);
    wanted_ = !running_.is_nil();
  }

 private:
  const pthread_t thread_;
  Mutex mutex_;
  // The task whose code the thread is in; nil: none that may be interrupted.
  TaskId running_ GUARDED_BY(mutex_);
  bool wanted_ GUARDED_BY(mutex_) = false;
};

}  // namespace rt::python
