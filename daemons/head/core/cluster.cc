#include "daemons/head/core/cluster.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::head {
namespace {

constexpr int64_t kHeartbeatsOfALivingNode = 3, kLateMs = 1'000;

// Returns how long the report of a living node may be late on a busy machine.
int64_t late_us(const Settings& settings) {
  return std::min(kHeartbeatsOfALivingNode * settings.heartbeat_interval_ms + kLateMs,
                  settings.node_timeout_ms) *
         1000;
}

// Whether a timer that was due at `at_us` comes so late that the head itself was stopped or
// overloaded. What nodes have sent meanwhile may still be unread.
bool head_slept(const Settings& settings, int64_t at_us, Now due) {
  return due.steady_us - at_us > settings.heartbeat_interval_ms * 1000;
}

ResourceSet held_on(const NodeState& node) {
  ResourceSet held = node.actors_hold;
  held.add(node.bundles_hold);
  return held;
}

// Shows in `info` what actors and bundles hold on the node, by which node-managers choose where
// starved tasks wait. Adds the node to `changed` if that is news.
void show_held(NodeState& node, std::set<NodeId>* changed) {
  if (!node.alive()) return;
  const ResourceSet held = held_on(node);
  if (held == ResourceSet::from_proto(node.info.held())) return;
  held.to_proto(node.info.mutable_held());
  changed->insert(node.id);
}

}  // namespace

Cluster::Cluster(Env env) : env_(std::move(env)) {}

void Cluster::recover(const proto::Node& node, Now now) {
  NodeId id = NodeId::from_binary(node.node_id());
  NodeState& state = nodes_[id];
  state.id = id;
  state.info = node;
  state.info.set_alive(true);
  state.info.clear_problem();
  state.total = ResourceSet::from_proto(node.total());
  state.slot = candidates_.put(id, node.labels(), state.total);
  awaited_.insert(id);
  await_return(state, "after the head restarted", now);
}

void Cluster::await_return(NodeState& node, const std::string& since, Now now) {
  node.conn = 0;
  node.lost_at_us = now.steady_us;
  node.port_refused = false;
  const int64_t limit_ms = env_.options.settings.node_timeout_ms;
  arm_grace_timer(node, now.steady_us + limit_ms * 1000,
                  fmt::format("it did not come back within {} ms {}", limit_ms, since));
  if (!node.silence_timer) arm_silence_timer(node, now.steady_us + late_us(env_.options.settings));
  update_candidate(node);
  probe(node);
}

void Cluster::arm_grace_timer(NodeState& node, int64_t at_us, std::string why) {
  node.grace_timer = env_.timers.at(at_us, [this, id = node.id, at_us, why](Now due) {
    NodeState* node = find(id);
    if (node && head_slept(env_.options.settings, at_us, due))
      return arm_grace_timer(*node, due.steady_us + late_us(env_.options.settings), why);
    env_.on_node_lost(id, why, due);
  });
}

void Cluster::probe(NodeState& node) {
  if (node.info.port() > 0) env_.sink.probe(node.id, node.info.ip(), node.info.port());
}

void Cluster::probe_answered(const NodeId& id, const Status& answer, Now now) {
  NodeState* node = find(id);
  if (!node || !node->alive() || node->conn != 0 || node->port_refused || node->probe_timer) return;
  const Settings& settings = env_.options.settings;
  if (answer || answer.error().code != Code::kUnavailable) {
    node->probe_timer =
        env_.timers.at(now.steady_us + settings.heartbeat_interval_ms * 1000, [this, id](Now) {
          NodeState* node = find(id);
          node->probe_timer = 0;
          probe(*node);
        });
    return;
  }
  node->port_refused = true;
  env_.timers.cancel(node->grace_timer);
  int64_t grace_ms = std::min(settings.node_reconnect_grace_ms, settings.node_timeout_ms);
  arm_grace_timer(*node, std::max(now.steady_us, node->lost_at_us + grace_ms * 1000),
                  fmt::format("its connection broke and its node-manager has ended: {}",
                              answer.error().message));
}

Status Cluster::validate(const proto::Node& node) const {
  if (!NodeId::is_valid(node.node_id()))
    return make_error(Code::kInvalid, fmt::format("a node id has {} bytes, not {}",
                                                  node.node_id().size(), NodeId::kSize));
  if (NodeId::from_binary(node.node_id()).is_nil())
    return make_error(Code::kInvalid, "the node id is nil");
  if (node.ip().empty())
    return make_error(Code::kInvalid, "the node names no ip address; give --node-ip");
  if (node.port() < 0 || node.port() > 65535)
    return make_error(Code::kInvalid,
                      fmt::format("the node's port {} is out of range", node.port()));
  for (const auto& [name, units] : node.total().units()) {
    if (name.empty() || units < 0 ||
        units > static_cast<int64_t>(ResourceSet::kMaxAmount) * ResourceSet::kUnit)
      return make_error(Code::kInvalid,
                        fmt::format("the node's resource '{}' has an amount out of range", name));
  }
  return {};
}

// A node that comes back has its old id and address, and its old connection may still look sound
// here. Any other claim to the id or the address of a node that reported a moment ago is a mistake
// of the operator and is refused.
Status Cluster::check_claims(ConnId conn, const NodeId& id, const proto::Node& node,
                             Now now) const {
  int64_t since_us =
      now.steady_us - kHeartbeatsOfALivingNode * env_.options.settings.heartbeat_interval_ms * 1000;
  for (const auto& [other_id, other] : nodes_) {
    if (!other.usable() || other.conn == conn || other.last_heard_us < since_us) continue;
    bool same_address = other.info.ip() == node.ip() && other.info.port() == node.port();
    if (other_id == id && !same_address)
      return make_error(
          Code::kAlreadyExists,
          fmt::format("node {} lives at {}:{} already; start this one with an id of its own",
                      id.hex(), other.info.ip(), other.info.port()));
    if (other_id != id && same_address && node.port() != 0)
      return make_error(
          Code::kAlreadyExists,
          fmt::format(
              "{}:{} is the address of node {}, which lives; give this one an address of its own",
              node.ip(), node.port(), other_id.hex()));
  }
  return {};
}

Result<NodeState*> Cluster::register_node(ConnId conn, const proto::Node& node, Now now) {
  RT_TRY(validate(node));
  NodeId id = NodeId::from_binary(node.node_id());
  if (auto other = by_conn_.find(conn); other != by_conn_.end() && other->second != id)
    return make_error(Code::kInvalid, "this connection speaks for another node already");
  NodeState* known = find(id);
  if (known && !known->alive())
    return make_error(Code::kNodeDied,
                      fmt::format("node {} was declared dead ({}); start it again as a new node",
                                  id.hex(), known->info.death_message()));
  RT_TRY(check_claims(conn, id, node, now));

  NodeState& state = known ? *known : nodes_[id];
  if (state.conn != 0 && state.conn != conn) {
    ConnId old = state.conn;
    by_conn_.erase(old);
    env_.sink.close(old,
                    make_error(Code::kUnavailable, "the node registered over a newer connection"));
  }
  env_.timers.cancel(state.grace_timer);
  env_.timers.cancel(state.probe_timer);
  int64_t start_ms = known ? known->info.start_time_ms() : 0;
  state.id = id;
  state.info = node;
  state.info.set_alive(true);
  state.info.set_start_time_ms(start_ms               ? start_ms
                               : node.start_time_ms() ? node.start_time_ms()
                                                      : now.wall_us / 1000);
  if (state.info.name().empty()) state.info.set_name(node.ip());
  state.total = ResourceSet::from_proto(node.total());
  state.slot = candidates_.put(id, node.labels(), state.total);
  if (!node.has_available()) *state.info.mutable_available() = node.total();
  state.available = ResourceSet::from_proto(state.info.available());
  drop_confirmed_reservations(state);
  show_available(state);
  state.conn = conn;
  state.last_heard_us = now.steady_us;
  env_.timers.cancel(state.refusal_timer);
  by_conn_[conn] = id;
  awaited_.erase(id);
  set_silent(state, false);
  if (!state.silence_timer)
    arm_silence_timer(state, now.steady_us + late_us(env_.options.settings));
  update_candidate(state);
  show_held(state, &resources_changed_);
  members_changed_.insert(id);
  env_.journal.put(table::kNodes, id.binary(), record_of(state));
  return &state;
}

// Each node has one timer, which is not reset by each report: when due, it looks how long the node
// has been silent and starts again for the rest of the time until that is told, or until the node
// is dead, but for no longer than a report may be late, so that it notices whenever the head
// sleeps. The node then gets as long as a report may be late. For a node without a connection the
// grace timer decides when it is dead.
void Cluster::arm_silence_timer(NodeState& node, int64_t at_us) {
  NodeId id = node.id;
  node.silence_timer = env_.timers.at(at_us, [this, id, at_us](Now due) {
    NodeState* node = find(id);
    if (!node || !node->alive()) return;
    node->silence_timer = 0;
    const int64_t limit_us = env_.options.settings.node_timeout_ms * 1000;
    const int64_t heard_us = node->heard_us();
    const bool head_was_late = head_slept(env_.options.settings, at_us, due);
    if (!head_was_late && node->conn != 0 && due.steady_us - heard_us >= limit_us)
      return env_.on_node_lost(id, fmt::format("no heartbeat for {} ms", limit_us / 1000), due);
    if (!head_was_late && due.steady_us - heard_us >= late_us(env_.options.settings))
      set_silent(*node, true);
    if (node->silent && node->conn == 0) return;
    const int64_t decides_us =
        heard_us + (node->silent ? limit_us : late_us(env_.options.settings));
    arm_silence_timer(*node,
                      head_was_late
                          ? due.steady_us + late_us(env_.options.settings)
                          : std::min(decides_us, due.steady_us + late_us(env_.options.settings)));
  });
}

void Cluster::set_silent(NodeState& node, bool silent) {
  if (std::exchange(node.silent, silent) != silent) resources_changed_.insert(node.id);
}

NodeState* Cluster::on_connection(ConnId conn) {
  auto it = by_conn_.find(conn);
  return it == by_conn_.end() ? nullptr : find(it->second);
}

bool Cluster::connection_closed(ConnId conn, Now now) {
  NodeState* node = on_connection(conn);
  if (!node) return false;
  by_conn_.erase(conn);
  await_return(*node, "after its connection broke", now);
  return true;
}

// Drops the reservations of actors that the node has started and of bundles that it holds: its
// report includes them.
void Cluster::drop_confirmed_reservations(NodeState& node) {
  std::erase_if(node.reserved.claims, [&](const auto& entry) {
    if (entry.second.answered) node.reserved.sum.subtract(entry.second.amount);
    return entry.second.answered;
  });
}

// Updates node.info.available, which people see and by which node-managers choose where to send
// tasks.
void Cluster::show_available(NodeState& node) {
  update_candidate(node);
  ResourceSet free = free_now(node);
  proto::Resources shown;
  for (const auto& [name, units] : free.all()) {
    if (units > 0) (*shown.mutable_units())[name] = units;
  }
  const auto& before = node.info.available().units();
  bool same = before.size() == shown.units().size() &&
              std::all_of(before.begin(), before.end(), [&](const auto& item) {
                auto it = shown.units().find(item.first);
                return it != shown.units().end() && it->second == item.second;
              });
  if (same) return;
  *node.info.mutable_available() = std::move(shown);
  resources_changed_.insert(node.id);
}

void Cluster::update_candidate(const NodeState& node) {
  if (node.slot == scheduling::kNoNode) return;
  candidates_.set_open(node.slot, node.takes_work() && !node.refusal_timer);
  candidates_.set_free(node.slot, free_now(node));
  if (node.bundles_hold.empty())
    return candidates_.set_actors(node.slot, node.actors_hold, node.actors_placed, node.actors);
  ResourceSet placed = node.actors_placed;
  placed.add(node.bundles_hold);
  candidates_.set_actors(node.slot, held_on(node), placed, node.actors);
}

void Cluster::start_refused(NodeState& node, Now now) {
  env_.timers.cancel(node.refusal_timer);
  const int64_t pause_us = env_.options.settings.placement_settle_ms * 1000;
  node.refusal_timer = env_.timers.at(now.steady_us + pause_us, [this, id = node.id](Now) {
    NodeState* refused = find(id);
    if (!refused || !refused->alive()) return;
    refused->refusal_timer = 0;
    update_candidate(*refused);
  });
  update_candidate(node);
}

Result<bool> Cluster::report(ConnId conn, const proto::ResourceReport& report, Now now) {
  NodeState* node = on_connection(conn);
  if (!node || report.node_id() != node->id.view())
    return make_error(Code::kNotFound, "resources reported for a node that is not registered here");
  node->last_heard_us = now.steady_us;
  set_silent(*node, false);
  if (report.incarnation() < node->info.incarnation()) return false;
  ResourceSet available = ResourceSet::from_proto(report.available());
  bool changed = !(available == node->available);
  bool had_reserved = !node->reserved.claims.empty() || node->refusal_timer;
  node->info.set_incarnation(report.incarnation());
  node->available = std::move(available);
  env_.timers.cancel(node->refusal_timer);
  if (report.drain().SerializeAsString() != node->info.drain().SerializeAsString()) {
    node->info.clear_drain();
    if (report.has_drain()) *node->info.mutable_drain() = report.drain();
    resources_changed_.insert(node->id);
  }
  if (report.problem() != node->info.problem()) {
    node->info.set_problem(report.problem());
    resources_changed_.insert(node->id);
    env_.sink.log(report.problem().empty() ? fmt::format("node {} works again", node->id.hex())
                                           : fmt::format("node {} does not work as it should: {}",
                                                         node->id.hex(), report.problem()));
  }
  *node->info.mutable_reserved() = report.reserved();
  *node->info.mutable_reserved_used() = report.reserved_used();
  drop_confirmed_reservations(*node);
  show_available(*node);
  int kept = static_cast<int>(
      std::min<int64_t>(report.demands_size(), env_.options.settings.demands_per_node));
  node->waiting = {{report.demands().begin(), report.demands().begin() + kept},
                   std::max<int64_t>(report.demands_left_out(), 0),
                   report.store_waits(),
                   std::max<int64_t>(report.waiting_for_arguments(), 0),
                   std::max<int64_t>(report.waiting_for_actors(), 0)};
  for (int i = kept; i < report.demands_size(); ++i)
    node->waiting.demands_left_out += report.demands(i).count();
  return changed || had_reserved;
}

void Cluster::declare_dead(NodeState& node, proto::NodeDeath reason, const std::string& why,
                           Now now) {
  RT_CHECK(node.alive());
  env_.timers.cancel(node.grace_timer);
  env_.timers.cancel(node.silence_timer);
  env_.timers.cancel(node.probe_timer);
  env_.timers.cancel(node.refusal_timer);
  candidates_.remove(node.id);
  node.slot = scheduling::kNoNode;
  if (node.conn) {
    by_conn_.erase(node.conn);
    env_.sink.close(node.conn, make_error(Code::kNodeDied, "the node was declared dead: " + why));
    node.conn = 0;
  }
  node.info.set_alive(false);
  node.info.clear_problem();
  node.silent = false;
  node.info.set_death_reason(reason);
  node.info.set_death_message(why);
  node.info.set_end_time_ms(now.wall_us / 1000);
  node.info.clear_available();
  node.info.clear_reserved();
  node.info.clear_reserved_used();
  node.info.clear_held();
  node.available = ResourceSet();
  node.reserved.claims.clear();
  node.reserved.sum = ResourceSet();
  node.waiting = {};
  awaited_.erase(node.id);
  members_changed_.insert(node.id);
  resources_changed_.erase(node.id);
  env_.journal.erase(table::kNodes, node.id.binary());
  dead_order_.push_back(node.id);
}

NodeState* Cluster::find(const NodeId& id) {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

const NodeState* Cluster::find(const NodeId& id) const {
  auto it = nodes_.find(id);
  return it == nodes_.end() ? nullptr : &it->second;
}

proto::Node Cluster::shown(const NodeState& node, Now now) const {
  proto::Node shown = node.info;
  if (node.alive() && now.steady_us - node.heard_us() >= late_us(env_.options.settings))
    shown.set_problem(silence_of(node, now));
  return shown;
}

proto::Node Cluster::announced(const NodeState& node, Now now) const {
  proto::Node announced = node.info;
  if (node.silent) announced.set_problem(silence_of(node, now));
  return announced;
}

std::string Cluster::silence_of(const NodeState& node, Now now) const {
  return fmt::format(
      "its node-manager (process {}) {} for {} s: the process hangs, its machine is overloaded or "
      "the network is interrupted; the head declares the node dead after {} ms",
      node.info.pid(), node.conn == 0 ? "has had no connection to the head" : "has been silent",
      (now.steady_us - node.heard_us()) / 1'000'000, env_.options.settings.node_timeout_ms);
}

std::optional<NodeId> Cluster::predecessor_of(const NodeState& node) const {
  if (node.info.port() == 0) return std::nullopt;
  for (const auto& [id, other] : nodes_) {
    if (id != node.id && other.alive() && other.conn == 0 && other.info.ip() == node.info.ip() &&
        other.info.port() == node.info.port())
      return id;
  }
  return std::nullopt;
}

void Cluster::add_actor(NodeState& node, const ResourceSet& held, const ResourceSet& placed) {
  node.actors_hold.add(held);
  node.actors_placed.add(placed);
  ++node.actors;
  update_candidate(node);
  show_held(node, &resources_changed_);
}

void Cluster::remove_actor(NodeState& node, const ResourceSet& held, const ResourceSet& placed) {
  node.actors_hold.subtract(held);
  node.actors_placed.subtract(placed);
  --node.actors;
  update_candidate(node);
  show_held(node, &resources_changed_);
}

void Cluster::add_bundles(NodeState& node, const ResourceSet& amount) {
  node.bundles_hold.add(amount);
  update_candidate(node);
  show_held(node, &resources_changed_);
}

void Cluster::remove_bundles(NodeState& node, const ResourceSet& amount) {
  node.bundles_hold.subtract(amount);
  update_candidate(node);
  show_held(node, &resources_changed_);
}

void Cluster::reserve(NodeState& node, const Claimant& who, const ResourceSet& placement) {
  cancel_reservation(node, who);
  node.reserved.claims[who] = {placement, false};
  node.reserved.sum.add(placement);
  show_available(node);
}

void Cluster::confirm_reservation(NodeState& node, const Claimant& who, const ResourceSet& held) {
  auto it = node.reserved.claims.find(who);
  if (it == node.reserved.claims.end()) return;
  if (it->second.amount == held) {
    it->second.answered = true;
    return;
  }
  cancel_reservation(node, who);
  if (held.empty()) return;
  node.reserved.claims[who] = {held, true};
  node.reserved.sum.add(held);
  show_available(node);
}

void Cluster::cancel_reservation(NodeState& node, const Claimant& who) {
  auto it = node.reserved.claims.find(who);
  if (it == node.reserved.claims.end()) return;
  node.reserved.sum.subtract(it->second.amount);
  node.reserved.claims.erase(it);
  show_available(node);
}

ResourceSet Cluster::free_now(const NodeState& node) {
  ResourceSet free = node.available;
  free.subtract_allowing_debt(node.reserved.sum);
  return free;
}

void Cluster::broadcast(const proto::HeadEvent& event) const {
  for (const auto& [id, node] : nodes_) {
    if (node.usable()) env_.sink.push(node.conn, event);
  }
}

void Cluster::publish(Now now, const std::function<void(const proto::HeadEvent&)>& to_subscribers) {
  if (!members_changed_.empty()) {
    proto::HeadEvent event;
    for (const NodeId& id : members_changed_) {
      if (const NodeState* node = find(id)) *event.add_nodes() = announced(*node, now);
    }
    members_changed_.clear();
    env_.sink.membership_changed();
    broadcast(event);
    to_subscribers(event);
  }
  while (static_cast<int64_t>(dead_order_.size()) > env_.options.settings.dead_nodes_kept) {
    nodes_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
  if (resources_changed_.empty() || fanout_timer_) return;
  // Each node receives the resources of every other node: with n nodes that is n^2 messages, so the
  // interval grows with n.
  const int64_t crowds = std::max<int64_t>(1, static_cast<int64_t>(by_conn_.size()) / 16);
  const int64_t due_us =
      last_fanout_us_ + env_.options.settings.node_fanout_interval_ms * 1000 * crowds;
  if (now.steady_us < due_us) {
    // The event in which this timer runs calls publish() when it ends.
    fanout_timer_ = env_.timers.at(due_us, [this](Now) { fanout_timer_ = 0; });
    return;
  }
  proto::HeadEvent event;
  for (const NodeId& id : resources_changed_) {
    if (const NodeState* node = find(id)) *event.add_nodes() = announced(*node, now);
  }
  resources_changed_.clear();
  last_fanout_us_ = now.steady_us;
  if (by_conn_.size() > 1) broadcast(event);
}

void Cluster::check_invariants(Now) const {
  size_t connected = 0;
  for (const auto& [id, node] : nodes_) {
    RT_CHECK(node.id == id);
    connected += node.conn != 0;
    if (node.conn) RT_CHECK(node.alive() && by_conn_.at(node.conn) == id);
    if (!node.alive()) RT_CHECK(node.reserved.claims.empty() && node.actors == 0 && !node.silent);
    if (node.alive())
      RT_CHECK(node.conn ? node.silence_timer != 0 && node.grace_timer == 0 && node.probe_timer == 0
                         : node.grace_timer != 0);
    ResourceSet sum;
    for (const auto& [who, reservation] : node.reserved.claims) sum.add(reservation.amount);
    RT_CHECK(sum == node.reserved.sum);
  }
  RT_CHECK(connected == by_conn_.size());
}

Result<NodeState*> node_over(Cluster& cluster, ConnId conn, const char* request) {
  NodeState* node = cluster.on_connection(conn);
  if (!node)
    return make_error(Code::kNotFound,
                      fmt::format("{}: no live node is registered over this connection", request));
  return node;
}

Result<NodeLink> connected_node(const Cluster& cluster, const NodeId& id) {
  const NodeState* node = cluster.find(id);
  if (!node || !node->usable())
    return make_error(Code::kUnavailable, fmt::format("node {} is not connected", id.hex()));
  return node->link();
}

std::string record_of(const NodeState& node) {
  proto::Node record = node.info;
  record.clear_available();
  record.clear_reserved();
  record.clear_reserved_used();
  record.clear_held();
  return record.SerializeAsString();
}

}  // namespace rt::head
