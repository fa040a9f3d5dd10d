// The nodes of the cluster and what is free on them.
//
// A node is alive from its registration until it leaves or stays silent for node_timeout_ms.
// Without a connection it has lost its process or only the network: its front door is asked every
// heartbeat_interval_ms. Where that is refused the host lives and the node-manager does not, and
// the node is dead node_reconnect_grace_ms after its connection broke; else it has until
// node_timeout_ms. A dead node id never comes back.
//
// Resource view: `available` is what the node reported last, without what starting actors take.
// That is reserved here from the request to the node's answer, and what a started actor holds from
// then to the next report, which includes it. So an answer makes room for the next actor at once.
// Actors' holdings are known exactly, at any time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "common/resources/resource_set.h"
#include "daemons/head/core/journal.h"
#include "daemons/head/core/timers.h"
#include "daemons/head/core/types.h"

namespace rt::head {

inline constexpr int kReasonExpected = 1, kReasonUnexpected = 2;  // of proto::Node.death_reason

struct Reservation {
  ResourceSet amount;
  bool answered = false;
};

struct NodeState {
  NodeId id;
  proto::Node info;  // alive, total, available (less what is reserved), death
  ConnId conn = 0;   // 0: lost, or not back yet after a restart of the head
  ResourceSet total, available;
  std::map<ActorId, Reservation> reserved;
  ResourceSet reserved_sum;
  ResourceSet actors_hold;    // for good (alive) or while they start
  ResourceSet actors_placed;  // placement amounts of all of them: what policies call load
  int actors = 0;             // starting or alive
  std::vector<proto::Demand> demands;
  int64_t last_heard_us = 0;
  int64_t lost_at_us = 0;     // when the connection broke
  int64_t refused_at_us = 0;  // said "no resources" and has not reported since; 0: did not
  bool refused = false;       // its front door was, since the connection broke
  Timers::Id grace_timer = 0, silence_timer = 0, probe_timer = 0;

  bool alive() const { return info.alive(); }
  bool usable() const { return alive() && conn != 0; }
  bool takes_work() const { return usable() && !info.draining(); }
  NodeLink link() const { return {id, conn}; }
};

class Cluster {
 public:
  struct Env {
    const HeadOptions& options;
    HeadSink& sink;
    Journal& journal;
    Timers& timers;
    // A node is to be declared dead (a timer ran out): the owner calls bury() and cleans up.
    std::function<void(const NodeId&, const std::string& why, Now)> on_node_lost;
  };
  explicit Cluster(Env env) : env_(std::move(env)) {}

  // From a record of an earlier head: alive and awaited, as one whose connection has just broken.
  void recover(const proto::Node& node, Now now);
  // kInvalid: malformed; kNodeDied: this id was declared dead; kAlreadyExists: the id or the
  // address is a living node's. On success the connection speaks for the node.
  Result<NodeState*> register_node(ConnId conn, const proto::Node& node, Now now);
  // The live node that speaks over this connection, or null.
  NodeState* on_connection(ConnId conn);
  // Its time without a connection begins. False when the connection was no (current) node's.
  bool connection_closed(ConnId conn, Now now);
  // `answer`: success when something listens at the node's front door, kUnavailable when the host
  // refuses, else none came.
  void probe_answered(const NodeId& id, const Status& answer, Now now);
  // kNotFound: no such node on this connection; kInvalid. Old reports are ignored; true when it may
  // have freed something.
  Result<bool> report(ConnId conn, const proto::ResourceReport& report, Now now);
  // The node is dead from now on.
  void bury(NodeState& node, int reason, const std::string& why, Now now);

  NodeState* find(const NodeId& id);
  const NodeState* find(const NodeId& id) const;
  const std::map<NodeId, NodeState>& nodes() const { return nodes_; }
  // A node with a lost connection at the ip and port `node` listens on now: its predecessor, which
  // cannot live any more.
  std::optional<NodeId> superseded_by(const NodeState& node) const;
  // The head's own node, else any that can be used; null when there is none.
  NodeState* job_node();
  // Some recovered node has neither come back nor been given up.
  bool awaiting_nodes() const { return !awaited_.empty(); }
  // No live node could ever hold this.
  bool infeasible(const ResourceSet& request) const;

  // ---- accounting of actors
  void reserve(NodeState& node, const ActorId& actor, const ResourceSet& placement);
  // The node has answered: from now on it holds `held`, and the next report says so.
  void settle(NodeState& node, const ActorId& actor, const ResourceSet& held);
  void cancel_reservation(NodeState& node, const ActorId& actor);
  static ResourceSet free_now(const NodeState& node);  // available - reserved
  static ResourceSet free_of_actors(
      const NodeState& node);  // total - what actors hold: free once tasks end

  // ---- telling others
  // What changed since the last call for each: membership at once, resources when the interval has
  // passed.
  void publish(Now now, const std::function<void(const proto::HeadEvent&)>& to_subscribers);
  void broadcast(const proto::HeadEvent& event) const;  // to every connected node-manager
  void check_invariants(Now now) const;

 private:
  Status validate(const proto::Node& node) const;
  Status check_claims(ConnId conn, const NodeId& id, const proto::Node& node, Now now) const;
  void await_return(NodeState& node, const std::string& since, Now now);
  void probe(NodeState& node);
  void arm_silence_timer(NodeState& node, int64_t at_us);
  void drop_settled(NodeState& node);
  void show_available(NodeState& node);
  void persist(const NodeState& node);
  int64_t fanout_interval_us() const;

  Env env_;
  std::map<NodeId, NodeState> nodes_;
  std::unordered_map<ConnId, NodeId> by_conn_;
  std::unordered_set<NodeId> awaited_;
  std::deque<NodeId> dead_order_;
  std::set<NodeId> members_changed_, resources_changed_;
  int64_t last_fanout_us_ = 0;
  Timers::Id fanout_timer_ = 0;
};

}  // namespace rt::head
