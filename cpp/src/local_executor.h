// Threads that run calls in local mode: in order of submission, at most `limit` at a time. Threads
// start when needed and are never joined (user code may not return); they share what they use, so
// the executor may go first.
#pragma once

#include <functional>
#include <memory>

namespace ray::internal {

class LocalExecutor {
 public:
  // gives_way: a thread that waits in Get or Wait lets another one run meanwhile (tasks, not
  // actors).
  LocalExecutor(int limit, bool gives_way);
  // Threads end when the queue is empty.
  ~LocalExecutor();
  LocalExecutor(const LocalExecutor&) = delete;
  LocalExecutor& operator=(const LocalExecutor&) = delete;

  void submit(std::function<void()> job);
  void set_limit(int limit);

  // Around a wait of the calling thread, if it is one of an executor that gives way.
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
