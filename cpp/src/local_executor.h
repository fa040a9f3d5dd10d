// Threads that run calls in local mode, in order of submission and at most `limit` at a time.
// Threads start when they are needed and are never joined, as user code may not return; they share
// what they use, so that the executor may be destroyed first. Any thread may call.
#pragma once

#include <functional>
#include <memory>

namespace ray::internal {

class LocalExecutor {
 public:
  // gives_way: while one of its threads waits in Get or Wait, another one may run (for tasks, not
  // actors).
  LocalExecutor(int limit, bool gives_way);
  // Does not wait: the threads end when the queue is empty.
  ~LocalExecutor();
  LocalExecutor(const LocalExecutor&) = delete;
  LocalExecutor& operator=(const LocalExecutor&) = delete;

  void submit(std::function<void()> job);
  void set_limit(int limit);

  // Exists while its thread waits. If the thread belongs to an executor that gives way, another
  // thread may run meanwhile.
  class Waiting {
   public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
  };

 private:
  struct Core;
  static void run(std::shared_ptr<Core> core);
  static void start_threads(const std::shared_ptr<Core>& core);

  std::shared_ptr<Core> core_;
};

}  // namespace ray::internal
