// A driver: a Submitter, and the parts of a driver beside it, with models of the connections that
// worker/service provides (its files peers, submission, leases).
//
// It joins the cluster through the node-manager of its node, submits tasks and actor calls, and
// ends with its node.
#pragma once

#include <deque>

#include "tests/sim/lease_watch.h"
#include "tests/sim/owner_actors.h"
#include "tests/sim/owner_arguments.h"
#include "tests/sim/owner_groups.h"
#include "tests/sim/owner_head.h"
#include "tests/sim/owner_tasks.h"
#include "tests/sim/world.h"
#include "worker/core/submitter.h"

namespace rt::sim {

class SimOwner final : public Process, private worker::SubmitSink {
 public:
  // With `outlived`, it is a process that works on for a job whose driver may end.
  SimOwner(World& world, SimNode& node, const JobId& outlived = JobId());
  ~SimOwner() override;

  // ---- the driver's program
  // Before the driver has joined, tasks wait. Returns the task's id, or nil if it waits so.
  TaskId submit(const TaskPlan& plan);
  void submit_child_of(const TaskId& parent);
  // Returns the id at once; the head places the actor later. Only once joined.
  ActorId create_actor(const ActorPlan& plan);
  // Returns the call's id, or nil if the driver has ended.
  TaskId call(const ActorId& actor, const TaskPlan& plan);
  void kill_actor(const ActorId& actor, bool no_restart) { actors_.kill(actor, no_restart); }
  // Returns the id at once; the head learns of the group a moment later. Only once joined.
  GroupId create_group(const GroupPlan& plan);
  // Any owner may remove any group.
  void remove_group(const GroupId& id) { groups_.remove(id); }
  OwnerTasks& tasks() { return tasks_; }
  // Returns every lease that has nothing to do.
  void return_idle_leases();
  void exit() { leave(Exit::kOrderly); }
  void crash() { leave(Exit::kAbrupt); }

  bool joined() const { return !job_.is_nil(); }
  const JobId& job() const { return job_; }  // nil before it has joined
  bool has_leases() const { return submitter_.has_leases(); }
  int64_t pending() const {
    return submitter_.pending() + actors_.calls().pending() + tasks_.waiting() +
           static_cast<int64_t>(not_joined_.size());
  }
  int64_t succeeded() const { return tasks_.succeeded(); }
  const std::map<ActorId, proto::ExitInfo>& dead_actors() const { return actors_.dead(); }
  const std::vector<std::string>& notices() const { return notices_; }
  worker::ActorLink::State actor_state(const ActorId& id) { return actors_.calls().link(id).state; }
  std::string unfinished_actors() const { return actors_.unfinished(); }
  SimNode& node() { return node_; }

  // ---- messages that arrive over connections
  void on_grant(Channel& from, const proto::LeaseGrant& grant);
  void on_revoke(Channel& from, const proto::LeaseRevoke& revoke);
  void on_redirect(Channel& from, const proto::LeaseRedirect& redirect);
  void on_notice(const proto::LeaseNotice& notice);
  void on_reply(Channel& from, const TaskReply& reply);
  void on_head_event(const proto::HeadEvent& event);

 private:
  using WithChannel = std::function<void(Result<ChannelPtr>)>;
  // A connection to a worker, for a lease or for an actor.
  struct Link {
    ChannelPtr channel;
    uint64_t lease_key = 0;
    ActorId actor;
    std::vector<WithChannel> waiters;
  };
  struct NodePeer {
    ChannelPtr channel;
    std::vector<WithChannel> waiters;
  };

  // SubmitSink
  void send_demand(const worker::NodeKey& node, const worker::SchedulingClass& c, int want,
                   int64_t backlog, const std::string& what, uint64_t last_answer) override;
  void connect_lease(const worker::Lease& lease) override;
  void push_task(const worker::Lease& lease, const worker::Task& task) override;
  void take_back(const worker::Lease& lease, int count) override;
  void return_lease(const worker::Lease& lease, bool worker_failed) override;
  void ask_exit(const worker::Lease& lease) override;
  void fail_task(worker::Task* task, const proto::ErrorValue& error) override {
    tasks_.fail(task, error);
  }
  void attempt_failed(const worker::Task&, const proto::ErrorValue&) override {}

  template <class F>
  void drive(F event) {
    event();
    submitter_.check_invariants();
    actors_.calls().check_invariants();
    leases_.look();
    arm_ticks();
  }
  void join();
  void register_job();
  void joined_as(const JobId& job, const WorkerId& id);
  void leave(Exit how);
  void arm_ticks();
  OwnerHead::Environment head_environment();
  OwnerActors::Environment actor_environment();
  OwnerTasks::Environment task_environment();
  OwnerGroups::Environment group_environment();

  // connections (sim_owner_peers.cc)
  void with_peer(const proto::WorkerAddress& address, WithChannel done);
  void with_node(const worker::NodeKey& node, WithChannel done);
  void link_closed(const WorkerId& id, Channel& channel);
  worker::NodeKey node_of(const Channel& channel) const;
  void answered(const worker::NodeKey& node, uint64_t class_id, int leases);

  World& world_;
  SimNode& node_;
  const JobId outlived_;
  OwnerHead head_;
  OwnerGroups groups_;
  worker::Submitter submitter_;
  LeaseWatch leases_;
  OwnerActors actors_;
  OwnerArguments arguments_;
  OwnerTasks tasks_;
  std::deque<TaskPlan> not_joined_;
  JobId job_;
  WorkerId id_;
  uint64_t last_task_ = 0;
  Alarm submitter_alarm_, calls_alarm_;

  ChannelPtr node_manager_;
  std::map<WorkerId, Link> links_;
  std::map<uint64_t, WorkerId> link_ids_;  // keys of links_, by connection
  std::map<worker::NodeKey, NodePeer> node_peers_;
  std::map<uint64_t, NodeId> node_ids_;  // keys of node_peers_, by connection
  std::set<NodeId> given_up_;  // nodes that could not be reached, until the submitter is told
  std::map<NodeId, int> node_hosts_;  // hosts of the nodes that are part of the cluster
  std::vector<std::string> notices_;
  struct Asked {
    int64_t answered = 0;  // leases granted or redirected so far
    int64_t allowed = 0;   // the most that the demands so far allow
  };
  std::map<std::pair<worker::NodeKey, uint64_t>, Asked> asked_;  // by node and class
};

inline SimOwner& owner_at(Channel& arrived) { return static_cast<SimOwner&>(*arrived.process()); }

}  // namespace rt::sim
