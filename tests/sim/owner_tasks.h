// The tasks and calls of a driver, from their submission to their end: models
// worker/service/{submission,results,cancellation}.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/sim/owner_actors.h"
#include "tests/sim/owner_arguments.h"
#include "tests/sim/owner_groups.h"
#include "tests/sim/sim_worker.h"
#include "tests/sim/world.h"
#include "worker/core/submitter.h"

namespace rt::sim {

class OwnerTasks {
 public:
  struct Environment {
    uint64_t owner = 0;  // number of the process
    NodeId node;
    std::function<void(int64_t delay_us, const char* what, std::function<void()> run)> after;
    // Runs an event of the submitter and the calls.
    std::function<void(const std::function<void()>&)> drive;
    // Asks the node of the lease to kill its worker.
    std::function<void(const worker::Lease&)> kill_worker;
  };
  // The parts of the driver that tasks go to; all of them outlive this object.
  struct Parts {
    worker::Submitter& submitter;
    OwnerActors& actors;
    OwnerGroups& groups;
    OwnerArguments& arguments;
  };

  OwnerTasks(World& world, Parts parts, Environment environment)
      : world_(world), parts_(parts), environment_(std::move(environment)) {}

  // The variables of the job's runtime environment, for the tasks that follow.
  void set_variables(std::map<std::string, std::string> job) { variables_ = std::move(job); }
  // `order`: the position among what the driver submits.
  void submit(const TaskPlan& plan, const TaskId& id, uint64_t order);
  void call(const TaskPlan& plan, const TaskId& id, uint64_t order);
  // Cancels what has not ended; nothing happens to other tasks. `force` is for tasks only.
  void cancel(const TaskId& id, bool force, bool recursive);
  // The task runs, and was cancelled together with the one that it has submitted.
  void cancel_child_of(const TaskId& parent, bool force);

  // Over a connection that is used for this lease, or for this actor if it is not nil. False if the
  // reply is to no task that is in flight.
  bool on_reply(uint64_t lease_key, const ActorId& actor, const TaskReply& reply);
  // The task has ended. Called by its submitter or the calls to actors.
  void fail(worker::Task* task, const proto::ErrorValue& error);

  int64_t succeeded() const { return succeeded_; }
  // The number of tasks that wait for their arguments.
  int64_t waiting() const { return static_cast<int64_t>(unready_.size()); }

 private:
  worker::Task* make(const TaskPlan& plan, const TaskId& id);
  worker::Template* function(const TaskPlan& plan, bool call);
  proto::TaskTemplate spec_of(const TaskPlan& plan) const;
  void succeed(worker::Task* task);
  void drop(worker::Task* task);
  // Tells the user that an attempt of the task failed. True if another attempt follows.
  bool retry(uint64_t lease_key, worker::ActorLink* actor, worker::Task* task);
  void tell(worker::TaskChannel* channel, uint32_t seq, bool force, bool recursive);
  void end_by_force(uint64_t lease_key, const TaskId& id);

  World& world_;
  const Parts parts_;
  const Environment environment_;
  worker::TaskPool pool_;
  std::map<std::string, std::unique_ptr<worker::Template>> functions_;
  std::map<std::string, std::string> variables_;
  std::map<TaskId, worker::Task*> open_;     // They have not ended.
  std::map<TaskId, worker::Task*> unready_;  // They wait for their arguments.
  int64_t succeeded_ = 0;
};

}  // namespace rt::sim
