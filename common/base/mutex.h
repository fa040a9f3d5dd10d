// Mutexes whose use a compiler checks.
//
// The macros say which mutex guards a variable, and which functions are called with it held or
// take it. Clang verifies that (-Wthread-safety, scripts/thread_safety); for other compilers they
// are empty. A lambda is a function of its own to clang: one that runs with the mutex held, because
// whoever calls it holds the mutex, says so in its first line with a function that is marked
// ASSERT_CAPABILITY.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define RT_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define RT_THREAD_SAFETY(attribute)
#endif

// A class whose objects are held and let go; `name` stands in the compiler's messages.
#define CAPABILITY(name) RT_THREAD_SAFETY(capability(name))
// A class whose objects hold a capability as long as they live.
#define SCOPED_CAPABILITY RT_THREAD_SAFETY(scoped_lockable)
// A variable that is read and written only while the capability is held; PT: what it points to.
#define GUARDED_BY(capability) RT_THREAD_SAFETY(guarded_by(capability))
#define PT_GUARDED_BY(capability) RT_THREAD_SAFETY(pt_guarded_by(capability))
// A function whose caller holds the capabilities, or must not hold them.
#define REQUIRES(...) RT_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) RT_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// A function that returns with the capability held, or without it.
#define ACQUIRE(...) RT_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) RT_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) RT_THREAD_SAFETY(release_capability(__VA_ARGS__))
// The same for a capability that several may hold at once, for reading only.
#define REQUIRES_SHARED(...) RT_THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) RT_THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) RT_THREAD_SAFETY(release_generic_capability(__VA_ARGS__))
// A function that returns the capability: what the compiler knows it as.
#define RETURN_CAPABILITY(capability) RT_THREAD_SAFETY(lock_returned(capability))
// A function after which the compiler takes the capability to be held.
#define ASSERT_CAPABILITY(...) RT_THREAD_SAFETY(assert_capability(__VA_ARGS__))
// A function whose inside is not checked.
#define NO_THREAD_SAFETY_ANALYSIS RT_THREAD_SAFETY(no_thread_safety_analysis)

namespace rt {

// A std::mutex, and nothing beyond it at run time.
class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex from its construction to its end, except between unlock() and lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  // For a mutex that try_lock() has taken.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) REQUIRES(mutex) : lock_(mutex.mutex_, adopt) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// A std::condition_variable. The waits give the mutex up and have it again when they return, which
// they may also do without a reason. They take no predicate: a loop around the wait says the same,
// and there the compiler sees that what it reads is guarded.
//
//   MutexLock lock(mutex_);
//   while (queue_.empty()) filled_.wait(mutex_);
class CondVar {
 public:
  using Clock = std::chrono::steady_clock;

  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False when the time has come.
  bool wait_until(Mutex& mutex, Clock::time_point deadline) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool woken = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  // False after `pause`, unless it was woken.
  bool wait_for(Mutex& mutex, Clock::duration pause) REQUIRES(mutex) {
    return wait_until(mutex, Clock::now() + pause);
  }
  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

// A std::shared_mutex: one may write, or several may read.
class CAPABILITY("mutex") SharedMutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_GENERIC() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriterLock() RELEASE() { mutex_.unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace rt
