// The head's decisions about membership, actors, jobs, key-value data and subscriptions: this class
// is the events that they are made of.
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
//   head_parts.h            its parts
//   consequences.h          what a change of one means for the others; the end of an event
//   rewrites.h              records that the disk did not take
//   recovery.h              what an earlier head left
//   head_view.h             questions
//   head_core.cc            events of nodes and of the core's own calls
//   head_core_requests.cc   jobs, key-value, actors, subscriptions
#pragma once

#include <string>

#include "daemons/head/core/consequences.h"
#include "daemons/head/core/head_parts.h"
#include "daemons/head/core/head_view.h"
#include "daemons/head/core/rewrites.h"

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
  void probe_answered(const NodeId& node, const Status& answer, Now now);
  void create_actor_answered(const NodeId& node, const ActorId& actor, int64_t epoch,
                             const Result<proto::CreateActorReply>& reply, Now now);
  void start_job_answered(const std::string& submission_id, const NodeId& node,
                          const Status& status, Now now);
  void stop_job_answered(const std::string& submission_id, const Result<proto::StopJobReply>& reply,
                         Now now);

  // Does what is due by now.
  void tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return parts_.timers.next_us(); }

  // Membership of nodes. register_node() calls `reply` before anything is sent to the node.
  void register_node(ConnId conn, const proto::RegisterNodeRequest& request, Now now,
                     Reply<proto::RegisterNodeReply> reply);
  Status report_resources(ConnId conn, const proto::ResourceReport& report, Now now);
  Status unregister_node(ConnId conn, const proto::UnregisterNodeRequest& request, Now now);
  void connection_closed(ConnId conn, Now now);

  // Drivers and their jobs. finish_job() fails with kNotFound for an unknown job.
  void add_job(const proto::AddJobRequest& request, Now now, Reply<proto::AddJobReply> reply);
  Status finish_job(const proto::FinishJobRequest& request, Now now);

  // Key-value store. See kv.h.
  void kv_put(const proto::KvPutRequest& request, Now now, Reply<proto::KvPutReply> reply);
  void kv_delete(const proto::KvGetRequest& request, Now now, Reply<proto::KvPutReply> reply);

  // Actors. See actor_manager.h. Reports fail with kNotFound when no live node speaks over `conn`.
  void register_actor(const proto::RegisterActorRequest& request, Now now,
                      Reply<proto::RegisterActorReply> reply);
  void kill_actor(const proto::KillActorRequest& request, Now now, Reply<proto::Empty> reply);
  Status actor_started(ConnId conn, const proto::ActorStarted& report, Now now);
  Status actor_died(ConnId conn, const proto::ActorDied& report, Now now);
  Status dead_workers(ConnId conn, const proto::DeadWorkers& report, Now now);

  // Placement groups. See group_manager.h.
  void register_group(ConnId conn, const proto::RegisterGroupRequest& request, Now now,
                      Reply<proto::Empty> reply);
  void remove_group(ConnId conn, const proto::GroupRequest& request, Now now,
                    Reply<proto::Empty> reply);
  void prepare_bundles_answered(const NodeId& node, const GroupId& group, int64_t epoch,
                                const Result<proto::PrepareBundlesReply>& reply, Now now);

  // Events. A subscription lives as long as its connection; see subscriptions.h.
  Status subscribe(ConnId conn, const proto::SubscribeRequest& request, Now now);
  Status publish_logs(ConnId conn, const proto::HeadEvent& event);

  // Jobs that clients submitted. See submitted_jobs.h.
  void submit_job(const proto::SubmitJobRequest& request, Now now,
                  Reply<proto::SubmitJobReply> reply);
  void stop_submitted_job(const std::string& submission_id, Now now,
                          Reply<proto::StopJobReply> reply);
  void delete_submitted_job(const std::string& submission_id, Now now, Reply<proto::Empty> reply);
  void report_submitted_job(ConnId conn, const proto::SubmittedJob& report, Now now,
                            Reply<proto::Empty> reply);

  // Publishes the address of the HTTP interface to nodes and, in the key-value store, to clients.
  // Call it before nodes register, because they get it with the reply.
  void set_dashboard(const std::string& address);

  // Questions. See head_view.h.
  const HeadView& view() const { return view_; }
  void check_invariants(Now now) const;

 private:
  // Ends an event when it goes out of scope.
  class Event {
   public:
    Event(HeadCore& core, Now now) : core_(core), now_(now) {}
    ~Event() { core_.consequences_.end_event(now_); }
    Event(const Event&) = delete;

   private:
    HeadCore& core_;
    Now now_;
  };

  HeadParts parts_;
  Consequences consequences_{parts_};
  Rewrites rewrites_{parts_};
  std::string dashboard_address_;
  const HeadView view_{parts_, consequences_, dashboard_address_};
};

}  // namespace rt::head
