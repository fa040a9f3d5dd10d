// One node: a NodeCore with models of what the service provides: connections, worker processes and
// the link to the head.
#pragma once

#include <set>

#include "daemons/node_manager/core/death_news.h"
#include "daemons/node_manager/core/drain_watch.h"
#include "daemons/node_manager/core/exit_waits.h"
#include "daemons/node_manager/core/head_calls.h"
#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/core/report_pace.h"
#include "tests/sim/node_head.h"
#include "tests/sim/node_news.h"
#include "tests/sim/node_reports.h"
#include "tests/sim/node_sessions.h"
#include "tests/sim/sim_store.h"
#include "tests/sim/sim_worker.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimNode final : public Process, private node::NodeSink {
 public:
  SimNode(World& world, int host, const ResourceSet& total, bool is_head_node);

  void accepted(const ChannelPtr& channel) override;
  // The host loses power: the node-manager, its workers and, through on_gone, its drivers end.
  void crash();
  // The node-manager is killed, and its workers and drivers end with it. Unlike after crash(),
  // what the node-manager had sent still arrives.
  void kill_manager();
  std::function<void()> on_gone;  // called when the node-manager has ended
  // An operator asks the node to leave. It may refuse.
  void drain(const proto::DrainRequest& request);

  // ---- requests that arrive over connections
  template <class T>
  using Answer = Channel::Answer<T>;
  void register_worker(Channel& from, const WorkerId& id, int pid, Answer<proto::Empty> answer) {
    sessions_.register_worker(from, id, pid, std::move(answer));
  }
  void register_driver(Channel& from, int pid, Answer<proto::RegisterWorkerReply> answer) {
    sessions_.register_driver(from, pid, std::move(answer));
  }
  void set_demand(Channel& from, const proto::LeaseDemand& demand);
  void return_lease(Channel& from, const proto::LeaseReturn& request);
  void set_blocked(Channel& from, bool blocked);
  // The worker has nothing left to do and ends.
  void worker_leaves(Channel& from);
  void await_exit(const WorkerId& id, Answer<proto::WorkerExitReply> answer);
  void create_actor(Channel& from, const proto::CreateActorRequest& request,
                    Answer<proto::CreateActorReply> answer);
  void kill(const proto::KillWorkerRequest& request);
  void prepare_bundles(const proto::PrepareBundlesRequest& request,
                       Answer<proto::PrepareBundlesReply> answer);
  void return_bundles(const proto::ReturnBundlesRequest& request);
  void on_head_event(const proto::HeadEvent& event);

  // ---- called by its workers directly, as the operating system would
  void process_ended(const WorkerId& id, const node::ProcessEnd& end);
  // Amounts that the process of a worker has, until it has been reaped.
  struct ProcessUse {
    const SimWorker* worker = nullptr;
    node::WorkerKind kind;
    std::vector<std::string> gpus;  // that its last lease came with
  };
  using Processes = std::map<WorkerId, ProcessUse>;

  const NodeId& id() const { return me_.id; }
  const node::NodeCore& core() const { return core_; }
  const ResourceSet& total() const { return me_.total; }
  const Processes& processes() const { return unreaped_; }
  bool registered() const { return head_.is_registered(); }
  NodeReports& reports() { return reports_; }
  SimStore* store() { return store_; }  // null in a world without values
  std::vector<SimWorker*> workers() const;
  // Says what is leased, wanted, running or missing on this node; empty if nothing is.
  std::string busy() const;

 private:
  // NodeSink
  void grant(node::OwnerId owner, const proto::LeaseGrant& grant) override;
  void revoke(node::OwnerId owner, const proto::LeaseRevoke& revoke) override;
  void redirect(node::OwnerId owner, const proto::LeaseRedirect& redirect) override;
  void notice(node::OwnerId owner, const proto::LeaseNotice& notice) override;
  void spawn_worker(const WorkerId& id, const node::WorkerKind& kind) override;
  void kill_worker(const WorkerId& id) override;
  void ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) override;
  void start_actor(const WorkerId& id, const proto::CreateActorRequest& request) override;
  void actor_created(const ActorId& id, int64_t epoch,
                     const proto::CreateActorReply& reply) override;
  void actor_died(const proto::ActorDied& died) override;
  void bundles_prepared(const GroupId& group, int64_t epoch,
                        const proto::PrepareBundlesReply& reply) override;
  void worker_died(const WorkerId& id, const proto::ExitInfo& info) override;
  void resources_changed() override;

  // Passes an event to the core, checks the invariants and arms the next tick.
  template <class F>
  auto drive(F event) {
    if constexpr (std::is_void_v<decltype(event(core_, Now()))>) {
      event(core_, clock_.now());
      check();
    } else {
      auto result = event(core_, clock_.now());
      check();
      return result;
    }
  }
  NodeSessions::Drive driving();  // drive(), for the parts of this node
  void check();
  void arm_tick();
  void session_closed(uint64_t connection);
  void leave(Exit how);
  void owners_gone(const proto::OwnersGone& gone);  // tells the store
  void arm_exits();
  void arm_report();
  void arm_drain();
  void leave_drained();
  // It is a violation if the node takes new work although it is leaving.
  void check_takes_work(const char* what) const;
  void arm_deaths();

  // link to the head (sim_node_head.cc)
  NodeHead::Events head_events();
  void on_registered(const proto::RegisterNodeReply& reply);
  void fill_registration(proto::RegisterNodeRequest* request) const;
  void send_report();
  void report_end(const proto::ActorDied& died, node::HeadQueue::Until until);

  World& world_;
  node::NodeIdentity me_;
  const bool is_head_node_;
  node::NodeCore core_;
  SimStore* store_ = nullptr;
  NodeHead head_;
  NodeSessions sessions_;
  NodeReports reports_;
  // Workers that are being started, and those of them that were killed meanwhile.
  std::set<WorkerId> spawning_, doomed_;
  std::set<WorkerId> resumed_;  // workers that came back from get() and may over-commit the node
  std::map<WorkerId, SimWorker*> processes_;
  Processes unreaped_;
  node::ExitWaits exit_waits_;
  NodeNews news_;
  node::ReportPace pace_;
  node::DrainWatch drain_watch_{core_};
  Alarm exit_alarm_, report_alarm_, drain_alarm_, death_alarm_, tick_alarm_;
  int64_t leaves_by_us_ = 0;  // the deadline of the last request to leave
  node::HeadCalls head_calls_;
  node::DeathNews deaths_;
  int last_pid_ = 0;
};

inline SimNode& node_at(Channel& arrived) { return static_cast<SimNode&>(*arrived.process()); }

}  // namespace rt::sim
