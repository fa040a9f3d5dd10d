// The one thread that writes the head's files. Tasks run in order; the destructor runs what was
// posted and joins.
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

  void post(std::function<void()> task) {  // any thread
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
  std::deque<std::function<void()>> tasks_;  // guarded; bounded by those who post (a drain each)
  bool stopping_ = false;                    // guarded
  std::thread thread_;
};

}  // namespace rt::head
