#include "daemons/object_store/shm/reserver.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

namespace rt::store {

namespace {
// The destructor waits for one step at most.
constexpr int64_t kStep = 16 << 20;
// A nearly full file system is used up in steps of this size.
constexpr int64_t kLastStep = 256 << 10;
}  // namespace

Reserver::~Reserver() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reserver::reserve(int64_t up_to) {
  std::lock_guard lock(mutex_);
  wanted_ = up_to;
  if (!thread_.joinable()) {
    // Signals must be delivered to the loop's thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  wake_.notify_all();
}

void Reserver::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || wanted_ > 0; });
    if (stopping_) return;
    int64_t wanted = wanted_;
    wanted_ = 0;
    lock.unlock();
    Status status = extend(wanted);
    int64_t reserved = reserved_;
    lock.lock();
    if (stopping_) return;
    lock.unlock();
    done_(reserved, std::move(status));
    lock.lock();
  }
}

Status Reserver::extend(int64_t up_to) {
  int64_t step = kStep;
  while (reserved_ < up_to) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return make_error(Code::kCancelled, "stopping");
    }
    int64_t size = std::min(step, up_to - reserved_);
    Status status = arena_.reserve(reserved_, size);
    if (status) {
      reserved_ += size;
    } else if (step > kLastStep) {
      step /= 4;
    } else {
      return status;
    }
  }
  return {};
}

}  // namespace rt::store
