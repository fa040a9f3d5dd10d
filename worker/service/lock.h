// The mutex under which all parts of a worker live, as a capability that clang checks
// (common/base/mutex.h).
//
// The parts do not name the mutex itself, because each would name another member through which it
// reaches the same one, and a compiler cannot see that they are the same. `worker_mutex` stands for
// the mutex of whichever worker the code is about. A process may have several workers (in tests),
// and nothing in it handles two of them at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "common/base/mutex.h"

namespace rt::worker {

class CAPABILITY("mutex") WorkerMutexRole {};
inline constexpr WorkerMutexRole worker_mutex;

class WorkerMutex {
 public:
  bool try_lock() TRY_ACQUIRE(true, worker_mutex) NO_THREAD_SAFETY_ANALYSIS {
    return mutex_.try_lock();
  }
  void unlock() RELEASE(worker_mutex) NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  friend class WorkerLock;
  std::mutex mutex_;
};

// Holds the mutex from its construction to its end, except between unlock() and lock(). A function
// that waits takes it as an argument, and gives it up meanwhile.
class SCOPED_CAPABILITY WorkerLock {
 public:
  explicit WorkerLock(WorkerMutex& mutex) ACQUIRE(worker_mutex) : lock_(mutex.mutex_) {}
  ~WorkerLock() RELEASE() {}
  WorkerLock(const WorkerLock&) = delete;
  WorkerLock& operator=(const WorkerLock&) = delete;

  void lock() ACQUIRE(worker_mutex) NO_THREAD_SAFETY_ANALYSIS { lock_.lock(); }
  void unlock() RELEASE(worker_mutex) NO_THREAD_SAFETY_ANALYSIS { lock_.unlock(); }
  bool owns_lock() const { return lock_.owns_lock(); }

 private:
  friend class WorkerCondVar;
  std::unique_lock<std::mutex> lock_;
};

// A std::condition_variable. The waits give the mutex up and have it again when they return.
class WorkerCondVar {
 public:
  template <class Done>
  void wait(WorkerLock& lock, Done done) REQUIRES(worker_mutex) {
    changed_.wait(lock.lock_, std::move(done));
  }
  // False after `pause`, unless it was woken.
  bool wait_for(WorkerLock& lock, std::chrono::microseconds pause) REQUIRES(worker_mutex) {
    return changed_.wait_for(lock.lock_, pause) == std::cv_status::no_timeout;
  }
  template <class Done>
  bool wait_for(WorkerLock& lock, std::chrono::microseconds pause, Done done)
      REQUIRES(worker_mutex) {
    return changed_.wait_for(lock.lock_, pause, std::move(done));
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

// The first line of a lambda that is called with the mutex held: by the loop, which runs everything
// under it, or by another part of the worker.
inline void assert_locked() ASSERT_CAPABILITY(worker_mutex) {}

}  // namespace rt::worker
