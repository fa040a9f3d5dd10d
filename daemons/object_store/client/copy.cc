// copy_large() writes to shared memory, which other processes read later. The copy therefore
// bypasses the caches (non-temporal stores), uses two threads if it is large, and populates new
// pages piece by piece right before they are filled.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "daemons/object_store/client/mapping.h"
#include "daemons/object_store/client/store_client.h"

namespace rt::store {

namespace {

// Threads take pieces of this size.
constexpr size_t kPiece = 1 << 20;
// Smaller copies stay in the cache, where a reader may find them.
constexpr size_t kStreamFrom = 256 * 1024;

using Copy = void (*)(uint8_t*, const uint8_t*, size_t);

#if defined(__x86_64__)
__attribute__((target("avx2"))) void stream_avx2(uint8_t* to, const uint8_t* from, size_t n) {
  for (; n >= 128; n -= 128, to += 128, from += 128) {
    __builtin_prefetch(from + 1024, 0, 0);
    __builtin_prefetch(from + 1088, 0, 0);
    __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 64));
    __m256i d = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 96));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), b);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 64), c);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 96), d);
  }
  _mm_sfence();
  std::memcpy(to, from, n);
}

void stream_sse2(uint8_t* to, const uint8_t* from, size_t n) {
  for (; n >= 64; n -= 64, to += 64, from += 64) {
    __builtin_prefetch(from + 1024, 0, 0);
    for (int i = 0; i < 64; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
  _mm_sfence();
  std::memcpy(to, from, n);
}

Copy choose_copy() { return __builtin_cpu_supports("avx2") ? stream_avx2 : stream_sse2; }
#else
void plain(uint8_t* to, const uint8_t* from, size_t n) { std::memcpy(to, from, n); }
Copy choose_copy() { return plain; }
#endif

void copy_block(uint8_t* to, const uint8_t* from, size_t n) {
  static const Copy stream = choose_copy();
  if (n < kStreamFrom) {
    std::memcpy(to, from, n);
    return;
  }
  Mapping::prepare_for_copy(to, n);
  size_t head = (64 - reinterpret_cast<uintptr_t>(to) % 64) % 64;
  std::memcpy(to, from, head);
  stream(to + head, from + head, n - head);
}

// A copy that two threads share: each takes the next piece until none is left.
struct Job {
  uint8_t* to;
  const uint8_t* from;
  size_t n;
  std::atomic<size_t> next{0};

  void work() {
    for (;;) {
      size_t at = next.fetch_add(kPiece, std::memory_order_relaxed);
      if (at >= n) return;
      copy_block(to + at, from + at, std::min(kPiece, n - at));
    }
  }
};

// The second thread. The first large copy starts it, because a process may fork before; a forked
// child starts its own. The thread never ends: a detached thread that sleeps costs nothing and
// needs no care at exit.
class Helper {
 public:
  // Returns false if the helper works on another copy or its thread cannot be started.
  bool try_start(Job* job) TRY_ACQUIRE(true, busy_) {
    if (!busy_.try_lock()) return false;
    if (!ensure_thread()) {
      busy_.unlock();
      return false;
    }
    MutexLock lock(mutex_);
    job_ = job;
    wake_.notify_one();
    return true;
  }
  // Waits for the helper's last piece. The caller has finished its own work().
  void finish() RELEASE(busy_) {
    {
      MutexLock lock(mutex_);
      // The helper has not even woken up, and nothing is left for it.
      if (!working_) job_ = nullptr;
      while (job_) done_.wait(mutex_);
    }
    busy_.unlock();
  }

 private:
  bool ensure_thread() REQUIRES(busy_) {
    if (owner_ == ::getpid()) return true;
    auto thread = start_thread([this] { run(); });
    if (!thread) return false;
    thread->detach();
    owner_ = ::getpid();
    return true;
  }
  void run() {
    pthread_setname_np(pthread_self(), "ray-copy");
    MutexLock lock(mutex_);
    for (;;) {
      while (!job_ || working_) wake_.wait(mutex_);
      working_ = true;
      Job* job = job_;
      lock.unlock();
      job->work();
      lock.lock();
      working_ = false;
      job_ = nullptr;
      done_.notify_one();
    }
  }

  Mutex busy_;  // Held from try_start() to finish().
  pid_t owner_ GUARDED_BY(busy_) = 0;
  Mutex mutex_;
  CondVar wake_, done_;
  Job* job_ GUARDED_BY(mutex_) = nullptr;
  bool working_ GUARDED_BY(mutex_) = false;
};

std::atomic<Helper*> g_helper{nullptr};

Helper& helper() {
  static const bool registered = [] {
    // A forked child lacks the thread, and the locks may be inconsistent there. It makes a helper
    // of its own and abandons the old one.
    pthread_atfork(nullptr, nullptr, [] { g_helper.store(nullptr); });
    return true;
  }();
  (void)registered;
  Helper* existing = g_helper.load(std::memory_order_acquire);
  if (existing) return *existing;
  auto* fresh = new Helper();
  if (g_helper.compare_exchange_strong(existing, fresh)) return *fresh;
  delete fresh;
  return *existing;
}

}  // namespace

void prefer_huge_pages(const uint8_t* from, size_t n) {
  // NumPy asks for huge pages from this size on, too.
  constexpr size_t kFrom = 4 << 20;
  constexpr uintptr_t kHuge = 2 << 20;
  if (n < kFrom) return;
  uintptr_t start = (reinterpret_cast<uintptr_t>(from) + kHuge - 1) & ~(kHuge - 1);
  uintptr_t end = (reinterpret_cast<uintptr_t>(from) + n) & ~(kHuge - 1);
  if (start < end) (void)::madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

void copy_large(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from) {
  if (n == 0) return;
  prefer_huge_pages(from, n);
  Job job{to, from, n, {}};
  if (n < kStreamFrom) {
    std::memcpy(to, from, n);
  } else if (n > parallel_from && n >= 2 * kPiece) {
    Helper& second = helper();
    bool helped = second.try_start(&job);
    job.work();
    if (helped) second.finish();
  } else {
    job.work();
  }
}

}  // namespace rt::store
