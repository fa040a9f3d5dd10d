// Runs calls in a C++ worker: finds the function in the job's libraries, decodes arguments, calls,
// hands back the result.
//
// Threads: execute() is called by the worker's main thread; actors with a concurrency above 1 run
// their methods in threads of ours.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster_runtime.h"
#include "code_loader.h"
#include "invoke.h"

namespace ray::internal {

class CppExecutor final : public rt::worker::Executor {
 public:
  explicit CppExecutor(ClusterRuntime& runtime) : runtime_(runtime) {}
  // stop() first.
  ~CppExecutor() override = default;

  void execute(std::unique_ptr<rt::worker::ExecutingTask> task) override;
  // C++ code cannot be interrupted: what runs, runs to its end.
  void cancel(const rt::TaskId&) override {}

  // Ends the threads. False: user code is still running in one.
  bool stop();

 private:
  // A function as tasks of one template see it. Kept in their language slot, never freed: there is
  // one per function.
  struct Function {
    const FunctionEntry* entry = nullptr;
    std::string marker;  // worker_output.h
  };

  void run(rt::worker::ExecutingTask& task);
  Function& function_of(rt::worker::ExecutingTask& task);
  const FunctionEntry& find(const rt::worker::ExecutingTask& task);
  void adopt_job(const rt::proto::JobConfig& job);
  void finish(rt::worker::ExecutingTask& task, CallResult result);
  void finish_split(rt::worker::ExecutingTask& task, const rt::worker::ValueParts& whole);
  void fail(rt::worker::ExecutingTask& task, const CallFailure& failure);
  void start_threads(int count);
  void run_thread();

  ClusterRuntime& runtime_;
  CodeLoader code_;
  std::mutex job_mutex_;
  std::string job_id_;
  std::string ray_namespace_;  // set with the job, before its first call runs
  std::shared_ptr<ActorInstance> instance_;
  std::atomic<bool> exited_{false};  // ExitActor() was called

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<rt::worker::ExecutingTask>>
      queue_;  // bounded by the callers' actor_max_in_flight
  std::vector<std::thread> threads_;
  int busy_ = 0;
  bool stopping_ = false;
};

}  // namespace ray::internal
