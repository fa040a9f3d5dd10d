// The tasks that have arrived in this process and have not started: read from their frames, with
// their arguments, and given back, refused or handed over, as their TaskLine decides.
#pragma once

#include <cstdint>
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
#include "worker/core/task_line.h"
#include "worker/core/value_codec.h"
#include "worker/core/wire.h"
#include "worker/service/incoming_task.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Execution;
class Groups;
class Objects;

class TaskQueue final : public LineSink {
 public:
  // A pool worker belongs to the job of the first task that it gets.
  using AdoptJob = std::function<void(const proto::JobConfig&)>;
  // All references must outlive this object.
  TaskQueue(Execution& execution, Objects& objects, Groups& groups, net::PollLoop& loop,
            const Options& options, const Context& context, AdoptJob adopt_job);
  ~TaskQueue();

  // The frames of owners: tasks, and the wish to have some back that have not started.
  void on_tasks(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  void on_take_back(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  // The owner of a waiting task says how many items of its generator are taken.
  void set_items_taken(const Link& link, uint32_t seq, uint32_t taken) REQUIRES(worker_mutex);
  // Queues the creation of the actor that this process is to be.
  void add_creation(const proto::CreateActorRequest& request) REQUIRES(worker_mutex);

  TaskLine& line() REQUIRES(worker_mutex) { return line_; }
  const TaskLine& line() const REQUIRES(worker_mutex) { return line_; }
  // Takes the task that runs next; null when none can run yet.
  std::shared_ptr<IncomingTask> next() REQUIRES(worker_mutex) {
    return std::static_pointer_cast<IncomingTask>(line_.next());
  }
  // Returns a task of this owner as not started. False if it does not wait here.
  bool cancel(const std::shared_ptr<Link>& link, uint32_t seq) REQUIRES(worker_mutex);
  // The error with which calls are refused from here on, encoded.
  void set_refusal(std::string error) REQUIRES(worker_mutex) { refusal_ = std::move(error); }
  template <class F>
  void for_each(F&& f) const REQUIRES(worker_mutex) {
    for (const auto& task : line_.tasks()) f(static_cast<const IncomingTask&>(*task));
  }

  void fetch_arguments(const std::shared_ptr<LineTask>& waiting) override REQUIRES(worker_mutex);
  void give_up_arguments(LineTask& waiting) override REQUIRES(worker_mutex);
  void return_task(LineTask& waiting) override REQUIRES(worker_mutex);
  void refuse_call(LineTask& waiting) override REQUIRES(worker_mutex);
  void tell_blocked(bool blocked) override REQUIRES(worker_mutex);

 private:
  // Whether arguments can be fetched. The task fails if not.
  bool has_store(IncomingTask& task) REQUIRES(worker_mutex);
  // Null when the bytes are malformed.
  ExecTemplate* exec_template(std::string_view serialized) REQUIRES(worker_mutex);
  // Arguments whose place the caller did not know are added to `unknown`, those in object stores to
  // task.to_fetch.
  bool read_args(IncomingTask& task, wire::Reader& reader, int count,
                 std::vector<IncomingTask::Fetch>* unknown) REQUIRES(worker_mutex);
  // Gets an argument by reference whose owner must be asked where the value is.
  void ask_for_arg(const std::shared_ptr<IncomingTask>& task, size_t index, const ObjectId& id,
                   const proto::WorkerAddress& owner) REQUIRES(worker_mutex);

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
  TaskLine line_ GUARDED_BY(worker_mutex){*this};
  std::string refusal_ GUARDED_BY(worker_mutex);
  std::unordered_map<std::string, std::unique_ptr<ExecTemplate>> templates_
      GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
