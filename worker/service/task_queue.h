// The tasks that have arrived in this process and have not started: read from their frames, with
// their arguments, and given back, cancelled or started.
//
// Tasks start in the order in which they came, as far as their arguments are here. In an actor that
// runs one call at a time, no call overtakes an earlier one of the same caller.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/net/poll_loop.h"
#include "common/proto/node_manager.pb.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/incoming_task.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Execution;
class Groups;
class Objects;

class TaskQueue {
 public:
  // A pool worker belongs to the job of the first task that it gets.
  using AdoptJob = std::function<void(const proto::JobConfig&)>;
  // All references must outlive this object.
  TaskQueue(Execution& execution, Objects& objects, Groups& groups, net::PollLoop& loop,
            const Options& options, const Context& context, AdoptJob adopt_job)
      : execution_(execution),
        objects_(objects),
        groups_(groups),
        loop_(loop),
        options_(options),
        context_(context),
        adopt_job_(std::move(adopt_job)) {}

  // The frames of owners: tasks, and the wish to have some back that have not started.
  void on_tasks(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  void on_take_back(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  // Queues the creation of the actor that this process is to be.
  void add_creation(const proto::CreateActorRequest& request) REQUIRES(worker_mutex);

  bool any_ready() REQUIRES(worker_mutex);
  // Takes the task that runs next; null when none can run yet.
  std::shared_ptr<IncomingTask> next() REQUIRES(worker_mutex);

  // Returns a task of this owner as not started. False if it does not wait here.
  bool cancel(const std::shared_ptr<Link>& link, uint32_t seq) REQUIRES(worker_mutex);
  // Returns all tasks as not started: those of other processes, unless this one is an actor.
  void give_back() REQUIRES(worker_mutex) { give_back(nullptr, ~size_t{0}); }
  // Answers all calls with an error.
  void refuse(std::string_view error) REQUIRES(worker_mutex);
  // Tasks that the peer sent die with its link.
  void link_closed(const std::shared_ptr<Link>& link) REQUIRES(worker_mutex);

  // Called when a plain actor is blocked: takes the arguments from the calls behind the one that
  // runs, because what that one waits for may need their room.
  void give_arguments_back() REQUIRES(worker_mutex);
  // Fetches what was given back, and what was not fetched meanwhile.
  void fetch_arguments() REQUIRES(worker_mutex);

  bool empty() const REQUIRES(worker_mutex) { return tasks_.empty(); }
  const std::deque<std::shared_ptr<IncomingTask>>& tasks() const REQUIRES(worker_mutex) {
    return tasks_;
  }

 private:
  void give_back(Link* only, size_t limit) REQUIRES(worker_mutex);
  // Null when the bytes are malformed.
  ExecTemplate* exec_template(std::string_view serialized) REQUIRES(worker_mutex);
  // Arguments whose place the caller did not know are added to `unknown`, those in object stores to
  // task.to_fetch.
  bool read_args(IncomingTask& task, wire::Reader& reader, int count,
                 std::vector<IncomingTask::Fetch>* unknown) REQUIRES(worker_mutex);
  // Gets an argument by reference whose owner must be asked where the value is.
  void ask_for_arg(const std::shared_ptr<IncomingTask>& task, size_t index, const ObjectId& id,
                   const proto::WorkerAddress& owner) REQUIRES(worker_mutex);
  // Fetches the arguments in `to_fetch` once no place of one is unknown.
  void fetch_args(const std::shared_ptr<IncomingTask>& task) REQUIRES(worker_mutex);

  // The value of an argument, with the references inside.
  Value argument(DecodedValue&& decoded, Keepalive keepalive) REQUIRES(worker_mutex);
  // An argument has come, or cannot be had.
  void take_argument(IncomingTask& task, const IncomingTask::Fetch& arg, Result<OwnedBytes> got)
      REQUIRES(worker_mutex);
  // Owners free the copies that they know of, also those that came for a task that was given back.
  void announce_fetched(const std::vector<IncomingTask::Fetch>& args,
                        const std::vector<Result<OwnedBytes>>& got) REQUIRES(worker_mutex);

  Execution& execution_;
  Objects& objects_;
  Groups& groups_;
  net::PollLoop& loop_;
  const Options& options_;
  const Context& context_;
  const AdoptJob adopt_job_;
  std::deque<std::shared_ptr<IncomingTask>> tasks_ GUARDED_BY(worker_mutex);
  std::unordered_map<std::string, std::unique_ptr<ExecTemplate>> templates_
      GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
