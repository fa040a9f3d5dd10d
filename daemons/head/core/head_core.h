// The head's decisions: this class ties membership, actors, jobs, key-value data and subscriptions
// together.
//
// The core is pure and single-threaded. Events come in as method calls that carry the time;
// decisions leave through HeadSink, whose methods must not call back. Every public method that
// changes something is one event: when it ends, its writes leave as one atomic batch, and
// placement and notifications happen once. The core needs no files or sockets, so the simulator
// can run it beside hundreds of node cores.
//
// The core validates what peers send. A request that promises durability is answered with the
// disk's error and leaves no trace if its batch fails. All other changes stay in memory and are
// written again until the disk takes them.
//
//   head_core.cc            events, membership, questions
//   head_core_requests.cc   jobs, key-value, actors, subscriptions
//   head_core_load.cc       recovery of what an earlier head left
#pragma once

#include <deque>

#include "common/base/rng.h"
#include "daemons/head/core/actor_manager.h"
#include "daemons/head/core/actor_queries.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/group_manager.h"
#include "daemons/head/core/jobs.h"
#include "daemons/head/core/kv.h"
#include "daemons/head/core/packages.h"
#include "daemons/head/core/submitted_jobs.h"
#include "daemons/head/core/subscriptions.h"

namespace rt::head {

class HeadCore {
 public:
  // `sink` must outlive the core.
  HeadCore(HeadOptions options, HeadSink& sink);

  // Must be the first call: recovers what an earlier head left in `tables`, which are empty for a
  // new cluster. Fails with kIo, naming a record that cannot be read, with kWrongCluster when the
  // tables belong to another cluster than the options say, or with kInvalid for a malformed
  // cluster id in the options.
  Status load(const Tables& tables, Now now);

  // Answers to calls of HeadSink.
  void persisted(uint64_t id, const Status& status, Now now);
  void timer(Now now);
  void probe_answered(const NodeId& node, const Status& answer, Now now);
  void create_actor_answered(const NodeId& node, const ActorId& actor, int64_t epoch,
                             const Result<proto::CreateActorReply>& reply, Now now);
  void start_job_answered(const std::string& submission_id, const NodeId& node,
                          const Status& status, Now now);
  void stop_job_answered(const std::string& submission_id, const Result<proto::StopJobReply>& reply,
                         Now now);

  // Membership of nodes. register_node() calls `reply` before anything is sent to the node.
  void register_node(ConnId conn, const proto::RegisterNodeRequest& request, Now now,
                     Reply<proto::RegisterNodeReply> reply);
  Status report_resources(ConnId conn, const proto::ResourceReport& report, Now now);
  Status unregister_node(ConnId conn, const proto::UnregisterNodeRequest& request, Now now);
  void connection_closed(ConnId conn, Now now);
  proto::GetNodesReply get_nodes(const proto::GetNodesRequest& request, Now now) const;
  proto::ClusterStatusReply cluster_status(Now now) const;

  // Drivers and their jobs. finish_job() fails with kNotFound for an unknown job.
  void add_job(const proto::AddJobRequest& request, Now now, Reply<proto::AddJobReply> reply);
  Status finish_job(const proto::FinishJobRequest& request, Now now);
  proto::GetJobsReply get_jobs() const;

  // Key-value store. See kv.h.
  void kv_put(const proto::KvPutRequest& request, Now now, Reply<proto::KvPutReply> reply);
  Result<proto::KvGetReply> kv_get(const proto::KvGetRequest& request) const {
    return kv_.get(request);
  }
  void kv_delete(const proto::KvGetRequest& request, Now now, Reply<proto::KvPutReply> reply);
  Result<proto::KvListReply> kv_list(const proto::KvListRequest& request) const {
    return kv_.list(request);
  }

  // Actors. See actor_manager.h. Reports fail with kNotFound when no live node speaks over `conn`.
  void register_actor(const proto::RegisterActorRequest& request, Now now,
                      Reply<proto::RegisterActorReply> reply);
  Result<proto::GetActorReply> get_actor(const proto::GetActorRequest& request) const {
    return head::get_actor(actors(), request);
  }
  Result<proto::ListActorsReply> list_actors(const proto::ListActorsRequest& request) const {
    return head::list_actors(actors(), request);
  }
  void kill_actor(const proto::KillActorRequest& request, Now now, Reply<proto::Empty> reply);
  Status actor_started(ConnId conn, const proto::ActorStarted& report, Now now);
  Status actor_died(ConnId conn, const proto::ActorDied& report, Now now);
  Status dead_workers(ConnId conn, const proto::DeadWorkers& report, Now now);

  // Placement groups. See group_manager.h.
  void register_group(ConnId conn, const proto::RegisterGroupRequest& request, Now now,
                      Reply<proto::Empty> reply);
  void remove_group(ConnId conn, const proto::GroupRequest& request, Now now,
                    Reply<proto::Empty> reply);
  Result<proto::GetGroupReply> get_group(const proto::GetGroupRequest& request) const {
    return groups_.get(request);
  }
  proto::ListGroupsReply list_groups() const { return groups_.list(); }
  void prepare_bundles_answered(const NodeId& node, const GroupId& group, int64_t epoch,
                                const Result<proto::PrepareBundlesReply>& reply, Now now);

  // Events. A subscription lives as long as its connection; see subscriptions.h.
  Status subscribe(ConnId conn, const proto::SubscribeRequest& request, Now now);
  Status publish_logs(ConnId conn, const proto::HeadEvent& event);

  // Jobs that clients submitted. See submitted_jobs.h.
  void submit_job(const proto::SubmitJobRequest& request, Now now,
                  Reply<proto::SubmitJobReply> reply);
  Result<proto::SubmittedJob> submitted_job(const std::string& submission_id) const;
  proto::SubmittedJobsReply submitted_jobs() const { return submitted_.list(); }
  void stop_submitted_job(const std::string& submission_id, Now now,
                          Reply<proto::StopJobReply> reply);
  void delete_submitted_job(const std::string& submission_id, Now now, Reply<proto::Empty> reply);
  void report_submitted_job(ConnId conn, const proto::SubmittedJob& report, Now now,
                            Reply<proto::Empty> reply);

  const std::string& cluster_id() const { return cluster_id_; }
  int64_t incarnation() const { return incarnation_; }
  // Publishes the address of the HTTP interface to nodes and, in the key-value store, to clients.
  // Call it before nodes register, because they get it with the reply.
  void set_dashboard(const std::string& address);
  const std::string& dashboard() const { return dashboard_address_; }
  const Cluster& cluster() const { return cluster_; }
  const Jobs& jobs() const { return jobs_; }
  const ActorDirectory& actors() const { return actors_.directory(); }
  const GroupDirectory& groups() const { return groups_.directory(); }
  void check_invariants(Now now) const;

 private:
  // Ends an event when it goes out of scope.
  class Event {
   public:
    Event(HeadCore& core, Now now) : core_(core), now_(now) {}
    ~Event() { core_.end_event(now_); }
    Event(const Event&) = delete;

   private:
    HeadCore& core_;
    Now now_;
  };

  Status load_meta(const Records& meta);
  void end_event(Now now);
  void end_job(const JobId& id, Now now);
  // Releases what the job keeps. The job must have ended, and no actor of it may be left.
  void job_over(const JobId& id);
  void node_lost(const NodeId& id, proto::NodeDeath reason, const std::string& why, Now now);
  void settle_if_complete(Now now);
  // Tells actors what has happened to placement groups, and the other way round. Returns whether
  // there was anything to tell.
  bool exchange_news(Now now);
  void rewrite_dirty();

  HeadOptions options_;
  HeadSink& sink_;
  Rng rng_;
  Timers timers_;
  Journal journal_;
  Subscriptions subscriptions_;
  Cluster cluster_;
  Jobs jobs_;
  Kv kv_;
  Packages packages_;
  GroupManager groups_;
  ActorManager actors_;
  SubmittedJobs submitted_;

  std::string cluster_id_;
  int64_t incarnation_ = 0;
  // Set after a restart of the head while recorded nodes have yet to come back.
  bool settling_ = false;
  // Jobs to announce to nodes at the end of the current event.
  proto::HeadEvent ended_now_;
  std::deque<std::string> recent_failures_;
  std::string dashboard_address_;
  Timers::Id retry_timer_ = 0;
};

}  // namespace rt::head
