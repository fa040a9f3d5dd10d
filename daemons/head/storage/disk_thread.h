// The one thread that writes the head's files. It runs tasks in the order of post(); the
// destructor runs what was posted and joins.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "common/base/mutex.h"

namespace rt::head {

class DiskThread {
 public:
  DiskThread() : thread_([this] { run(); }) {}
  ~DiskThread() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  DiskThread(const DiskThread&) = delete;

  // Any thread may call.
  void post(std::function<void()> task) {
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  void run() {
    MutexLock lock(mutex_);
    for (;;) {
      while (!stopping_ && tasks_.empty()) wake_.wait(mutex_);
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  Mutex mutex_;
  CondVar wake_;
  // Bounded by the callers: each writer has at most one drain posted.
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rt::head
