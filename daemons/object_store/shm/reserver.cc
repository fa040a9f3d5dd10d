#include "daemons/object_store/shm/reserver.h"

#include <algorithm>

#include "common/base/thread.h"

namespace rt::store {

namespace {
// The destructor waits for one step at most.
constexpr int64_t kStep = 16 << 20;
// A nearly full file system is used up in steps of this size.
constexpr int64_t kLastStep = 256 << 10;
}  // namespace

Reserver::~Reserver() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Reserver::reserve(int64_t up_to) {
  MutexLock lock(mutex_);
  wanted_ = up_to;
  if (!thread_.joinable()) {
    auto thread = start_thread([this] { run(); });
    // Without a thread the caller is told of an error, as with a full file system; another request
    // tries again.
    if (!thread) return done_(reserved_, std::move(thread).error());
    thread_ = std::move(*thread);
  }
  wake_.notify_all();
}

void Reserver::run() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && wanted_ <= 0) wake_.wait(mutex_);
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
      MutexLock lock(mutex_);
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
