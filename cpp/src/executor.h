// Runs calls in a C++ worker: finds the function in the job's libraries, decodes the arguments,
// calls it, and returns the result to the worker library.
//
// Threads: the worker's main thread calls execute(); actors with a concurrency above 1 run their
// methods in threads of the executor.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster_runtime.h"
#include "code_loader.h"
#include "common/base/mutex.h"
#include "invoke.h"

namespace ray::internal {

class CppExecutor final : public rt::worker::Executor {
 public:
  explicit CppExecutor(ClusterRuntime& runtime) : runtime_(runtime) {}
  // stop() must have returned true.
  ~CppExecutor() override = default;

  void execute(std::unique_ptr<rt::worker::ExecutingTask> task) override;
  // Does nothing: C++ code cannot be interrupted, so a running call ends as it would have.
  void cancel(const rt::TaskId&) override {}

  // Ends the threads. Returns false when one of them still runs user code.
  bool stop();

 private:
  // A function as tasks of one template see it, which keeps it.
  struct Function final : rt::worker::LoadedFunction {
    const FunctionEntry* entry = nullptr;
    std::string marker;  // See worker_output.h.
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
  rt::Mutex job_mutex_;
  std::string job_id_ GUARDED_BY(job_mutex_);
  std::string ray_namespace_;  // Set with the job, before its first call runs.
  std::shared_ptr<ActorInstance> instance_;
  std::atomic<bool> exited_{false};  // ExitActor() was called.

  std::vector<std::thread> threads_;  // Used by the main thread only.
  rt::Mutex mutex_;
  rt::CondVar changed_;
  // Bounded by the callers' actor_max_in_flight.
  std::deque<std::unique_ptr<rt::worker::ExecutingTask>> queue_ GUARDED_BY(mutex_);
  int busy_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace ray::internal
