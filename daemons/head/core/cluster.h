// The nodes of the cluster and the resources that are free on them.
//
// A node is alive from its registration until it leaves the cluster or is silent for
// node_timeout_ms. When its connection breaks, either its process or only the network is gone, so
// the head tries to connect to the node's TCP port every heartbeat_interval_ms. If the host
// refuses, the node-manager has ended, and the node is dead node_reconnect_grace_ms after its
// connection broke. Otherwise the node has until node_timeout_ms to come back. The id of a dead
// node is never valid again.
//
// Resource view: `available` is what the node reported last. A report does not cover actors that
// are still starting, so their placement amounts are reserved here from the request until the node
// answers. What a started actor holds stays reserved from that answer until the next report, which
// includes it. An answer therefore makes room for the next actor at once, without waiting for a
// report. What actors hold is known exactly at all times.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "common/resources/resource_set.h"
#include "common/scheduling/nodes.h"
#include "daemons/head/core/journal.h"
#include "daemons/head/core/timers.h"
#include "daemons/head/core/types.h"

namespace rt::head {

// Bundles of a placement group that one attempt to place it has put on a node.
struct BundleClaim {
  GroupId group;
  int64_t epoch = 0;
  friend auto operator<=>(const BundleClaim&, const BundleClaim&) = default;
};
// An actor or bundles, which claim resources of a node.
using Claimant = std::variant<ActorId, BundleClaim>;

// A claim on a node that the node's last report does not include.
struct Reservation {
  ResourceSet amount;
  // The node has started the actor or reserved the bundles; its next report includes the amount.
  bool answered = false;
};

struct NodeState {
  NodeId id;
  proto::Node info;  // `available` excludes what is reserved.
  // 0 while the connection is lost, or while the node has not come back after a restart of the
  // head.
  ConnId conn = 0;
  ResourceSet total, available;
  struct Reserved {
    std::map<Claimant, Reservation> claims;
    ResourceSet sum;
  };
  Reserved reserved;
  // Sum of what living actors hold and what starting actors need for their placement.
  ResourceSet actors_hold;
  // Sum of the placement amounts of all these actors, which scheduling policies regard as load.
  ResourceSet actors_placed;
  int actors = 0;  // The number of starting or living actors.
  // Sum of the bundles that the node holds or was asked to reserve.
  ResourceSet bundles_hold;
  // The work that waits at the node, as its last report says.
  struct Waiting {
    std::vector<proto::Demand> demands;
    int64_t demands_left_out = 0;  // Tasks and actors of demands beyond demands_per_node.
    proto::StoreWaits store;       // Requests for room in its object store.
    int64_t for_arguments = 0;     // Tasks and calls that wait for their arguments.
    int64_t for_actors = 0;        // Calls that wait for their actors.
  };
  Waiting waiting;
  int64_t last_heard_us = 0;
  int64_t lost_at_us = 0;  // When the connection broke, by the steady clock.
  // The node's host has refused connections to the node's port since the connection broke.
  bool port_refused = false;
  // The node's report is later than that of a living node can be, and the other nodes have been
  // told so.
  bool silent = false;
  // Its slot in Cluster::candidates(), while it is alive.
  scheduling::NodeSlot slot = scheduling::kNoNode;
  Timers::Id grace_timer = 0, silence_timer = 0, probe_timer = 0;
  Timers::Id refusal_timer = 0;  // Set while the node gets no actors; see start_refused().

  bool alive() const { return info.alive(); }
  // When the node was last known to be well, by the steady clock.
  int64_t heard_us() const { return conn == 0 ? lost_at_us : last_heard_us; }
  bool usable() const { return alive() && conn != 0; }
  bool takes_work() const { return usable() && !info.has_drain(); }
  NodeLink link() const { return {id, conn}; }
};

class Cluster {
 public:
  struct Env {
    const HeadOptions& options;
    HeadSink& sink;
    Journal& journal;
    Timers& timers;
    // A timer found that the node is lost. The receiver calls declare_dead() and cleans up what
    // depends on the node.
    std::function<void(const NodeId&, const std::string& why, Now)> on_node_lost;
  };
  explicit Cluster(Env env);

  // Adds a node from an earlier head's record. Like a node whose connection has just broken, it is
  // alive and has until node_timeout_ms to come back.
  void recover(const proto::Node& node, Now now);
  // Registers a new node, or one that comes back; from then on the connection speaks for it. Fails
  // with kInvalid for a malformed node or a connection that speaks for another node, with
  // kNodeDied for an id that was declared dead, with kAlreadyExists when a living node has the id
  // or the address.
  Result<NodeState*> register_node(ConnId conn, const proto::Node& node, Now now);
  // Returns the live node that speaks over this connection, or null.
  NodeState* on_connection(ConnId conn);
  // Starts the time that the node has to come back. Returns false when the connection spoke for no
  // node.
  bool connection_closed(ConnId conn, Now now);
  // The result of HeadSink::probe(): success when something listens on the node's port,
  // kUnavailable when its host refuses, another error when no answer came.
  void probe_answered(const NodeId& id, const Status& answer, Now now);
  // Takes a node's report and returns whether it may have freed resources. Ignores reports older
  // than the last one. Fails with kNotFound when this connection does not speak for the node.
  Result<bool> report(ConnId conn, const proto::ResourceReport& report, Now now);
  // Declares the node, which must be alive, dead and closes its connection.
  void declare_dead(NodeState& node, proto::NodeDeath reason, const std::string& why, Now now);

  NodeState* find(const NodeId& id);
  const NodeState* find(const NodeId& id) const;
  const std::map<NodeId, NodeState>& nodes() const { return nodes_; }
  // The live nodes, among which actors and entrypoints are placed. Those that take no work now are
  // closed.
  const scheduling::Nodes& candidates() const { return candidates_; }
  // The node as clients see it: `problem` also tells whether a living node is silent.
  proto::Node shown(const NodeState& node, Now now) const;
  // The node as other nodes hear of it. Whenever this `problem` begins or ends, they are told.
  proto::Node announced(const NodeState& node, Now now) const;
  // Returns a living node without connection whose ip and port `node` listens on. That is a
  // predecessor of `node` whose process cannot be alive any more.
  std::optional<NodeId> predecessor_of(const NodeState& node) const;
  // Returns whether a node that an earlier head recorded has neither come back nor been given up.
  bool awaiting_nodes() const { return !awaited_.empty(); }
  // Starts are not sent to the node until it has reported, or until placement_settle_ms have
  // passed.
  void start_refused(NodeState& node, Now now);

  // Accounting of actors, which hold `held` and were placed with `placed`. A reservation begins
  // with reserve() and ends with cancel_reservation(), or with the first report after
  // confirm_reservation().
  void add_actor(NodeState& node, const ResourceSet& held, const ResourceSet& placed);
  void remove_actor(NodeState& node, const ResourceSet& held, const ResourceSet& placed);
  void reserve(NodeState& node, const Claimant& who, const ResourceSet& placement);
  // The node has started the actor or reserved the bundles, which hold `held`. The node's next
  // report includes that.
  void confirm_reservation(NodeState& node, const Claimant& who, const ResourceSet& held);
  void cancel_reservation(NodeState& node, const Claimant& who);
  // Accounting of bundles, which hold `amount` until they are removed.
  void add_bundles(NodeState& node, const ResourceSet& amount);
  void remove_bundles(NodeState& node, const ResourceSet& amount);
  static ResourceSet free_now(const NodeState& node);  // Returns available - reserved.

  // Publishes what changed since the last call: membership to nodes and subscribers at once,
  // resources to nodes when the interval has passed.
  void publish(Now now, const std::function<void(const proto::HeadEvent&)>& to_subscribers);
  // Sends to every connected node-manager.
  void broadcast(const proto::HeadEvent& event) const;
  void check_invariants(Now now) const;

 private:
  Status validate(const proto::Node& node) const;
  Status check_claims(ConnId conn, const NodeId& id, const proto::Node& node, Now now) const;
  void await_return(NodeState& node, const std::string& since, Now now);
  void probe(NodeState& node);
  void arm_silence_timer(NodeState& node, int64_t at_us);
  // Declares the node dead at `at_us` for this reason. The node has no connection.
  void arm_grace_timer(NodeState& node, int64_t at_us, std::string why);
  void set_silent(NodeState& node, bool silent);
  std::string silence_of(const NodeState& node, Now now) const;
  void drop_confirmed_reservations(NodeState& node);
  void show_available(NodeState& node);
  void update_candidate(const NodeState& node);

  Env env_;
  std::map<NodeId, NodeState> nodes_;
  scheduling::Nodes candidates_;
  std::unordered_map<ConnId, NodeId> by_conn_;
  std::unordered_set<NodeId> awaited_;
  std::deque<NodeId> dead_order_;
  std::set<NodeId> members_changed_, resources_changed_;
  int64_t last_fanout_us_ = 0;
  Timers::Id fanout_timer_ = 0;
};

// Returns the node that speaks over the connection, or kNotFound with the name of the request.
Result<NodeState*> node_over(Cluster& cluster, ConnId conn, const char* request);
// Returns the link to a node, for requests that the service forwards to it, or kUnavailable when
// the node is not connected.
Result<NodeLink> connected_node(const Cluster& cluster, const NodeId& id);
// Returns the record of a living node for the disk.
std::string record_of(const NodeState& node);

}  // namespace rt::head
