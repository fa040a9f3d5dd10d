// Mutexes whose use a compiler checks.
//
// The macros say which mutex guards a variable, and which functions are called with it held or
// take it. Clang verifies that (-Wthread-safety, scripts/thread_safety); for other compilers they
// are empty. A lambda is a function of its own to clang: one that runs with the mutex held, because
// whoever calls it holds the mutex, says so in its first line with a function that is marked
// ASSERT_CAPABILITY.
#pragma once

#include <mutex>

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
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

// Holds a Mutex from its construction to its end, except between unlock() and lock().
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.native()) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }
  // For a std::condition_variable, which gives the mutex up and takes it again during the wait.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace rt
