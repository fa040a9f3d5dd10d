// The one thread that writes the head's files. It runs tasks in the order of post(); the
// destructor runs what was posted and joins.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rt::head {

class DiskThread {
 public:
  DiskThread() : thread_([this] { run(); }) {}
  ~DiskThread() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  DiskThread(const DiskThread&) = delete;

  // Any thread may call.
  void post(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_. Bounded by the callers: each writer has at most one drain posted.
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rt::head
