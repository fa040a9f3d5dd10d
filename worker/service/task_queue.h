// The tasks that have arrived in this process and have not started: read from their frames, with
// their arguments, and given back, cancelled or started.
//
// Tasks start in the order in which they came, as far as their arguments are here. In an actor that
// runs one call at a time, no call overtakes an earlier one of the same caller.
//
// All methods are called with the worker's mutex held.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "worker/core/wire.h"
#include "worker/service/incoming_task.h"
#include "worker/worker.h"

namespace rt::worker {

class TaskQueue {
 public:
  // `impl` must outlive this object.
  explicit TaskQueue(Worker::Impl& impl) : impl_(impl) {}

  // The frames of owners: tasks, and the wish to have some back that have not started.
  void on_tasks(const std::shared_ptr<Link>& link, Bytes body);
  void on_take_back(const std::shared_ptr<Link>& link, Bytes body);
  // Queues the creation of the actor that this process is to be.
  void add_creation(const proto::CreateActorRequest& request);

  bool any_ready();
  // Takes the task that runs next; null when none can run yet.
  std::shared_ptr<IncomingTask> next();

  // Returns a task of this owner as not started. False if it does not wait here.
  bool cancel(const std::shared_ptr<Link>& link, uint32_t seq);
  // Returns all tasks as not started: those of other processes, unless this one is an actor.
  void give_back() { give_back(nullptr, ~size_t{0}); }
  // Answers all calls with an error.
  void refuse(std::string_view error);
  // Tasks that the peer sent die with its link.
  void link_closed(const std::shared_ptr<Link>& link);

  // Called when a plain actor is blocked: takes the arguments from the calls behind the one that
  // runs, because what that one waits for may need their room.
  void give_arguments_back();
  // Fetches what was given back, and what was not fetched meanwhile.
  void fetch_arguments();

  bool empty() const { return tasks_.empty(); }
  const std::deque<std::shared_ptr<IncomingTask>>& tasks() const { return tasks_; }

 private:
  void give_back(Link* only, size_t limit);
  // Null when the bytes are malformed.
  ExecTemplate* exec_template(std::string_view serialized);
  // Arguments whose place the caller did not know are added to `unknown`, those in object stores to
  // task.to_fetch.
  bool read_args(IncomingTask& task, wire::Reader& reader, int count,
                 std::vector<IncomingTask::Fetch>* unknown);
  // Gets an argument by reference whose owner must be asked where the value is.
  void ask_for_arg(const std::shared_ptr<IncomingTask>& task, size_t index, const ObjectId& id,
                   const proto::WorkerAddress& owner);
  // Fetches the arguments in `to_fetch` once no place of one is unknown.
  void fetch_args(const std::shared_ptr<IncomingTask>& task);

  Worker::Impl& impl_;
  std::deque<std::shared_ptr<IncomingTask>> tasks_;
  std::unordered_map<std::string, std::unique_ptr<ExecTemplate>> templates_;
};

}  // namespace rt::worker
