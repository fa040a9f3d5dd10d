// NodeCore: reports to the head.
#include <map>
#include <tuple>

#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

// The demands of a report: those that people cannot tell apart are added together.
class NodeCore::DemandRows {
 public:
  DemandRows(const NodeCore& core, proto::ResourceReport* report) : core_(core), report_(report) {}

  void add(const Demand& demand) {
    // The head is told how many tasks wait; `want` alone is only how many workers would do.
    add({demand.resources, demand.infeasible.since_us >= 0, obstacle_of(demand),
         scheduling::where_of(demand.constraint.get()), demand.room},
        std::max<int64_t>(demand.want, demand.backlog), demand.what);
  }
  void add(const HostedActor& actor, int64_t count) {
    std::string waits_for;
    if (actor.state == HostedActor::State::kWaitingWorker) {
      waits_for = core_.workers_.starts().describe(actor.kind);
    } else if (!actor.room.is_node()) {
      waits_for = core_.rooms_.bundles().obstacle(actor.room, actor.placement);
    }
    add({actor.placement, false, std::move(waits_for), "", actor.room}, count,
        actor.request.spec().class_name());
  }
  void finish() {
    for (auto& [key, demand] : rows_) *report_->add_demands() = std::move(demand);
  }

 private:
  struct Key {
    ResourceSet resources;
    bool infeasible;
    std::string waits_for, where;
    RoomKey room;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  // Returns a phrase for people: what the demand waits for, or an empty one if that is resources of
  // the node that are in use.
  std::string obstacle_of(const Demand& demand) const {
    switch (demand.lacks) {
      case Demand::Lacks::kResources: break;
      case Demand::Lacks::kWorker: return core_.workers_.starts().describe(demand.kind);
      case Demand::Lacks::kTurn:
        return "others that have waited longer: what it needs is free, but is kept for them";
    }
    if (demand.room.is_node()) return "";
    if (demand.unplaced())
      return bundle_name(demand.room) + ": the group has no place yet, or was removed";
    if (core_.drain_) return bundle_name(demand.room) + ": its node is leaving the cluster";
    if (demand.target.excludes_this_node)
      return bundle_name(demand.room) + " on another node: this one does not match";
    return core_.rooms_.bundles().obstacle(demand.room, demand.resources,
                                           demand.target.newest_epoch);
  }
  void add(Key key, int64_t count, const std::string& what) {
    auto found = rows_.find(key);
    if (found == rows_.end()) {
      if (static_cast<int64_t>(rows_.size()) >= core_.settings_.demands_per_node)
        return report_->set_demands_left_out(report_->demands_left_out() + count);
      proto::Demand demand;
      key.resources.to_proto(demand.mutable_resources());
      demand.set_infeasible(key.infeasible);
      demand.set_what(what);
      demand.set_waits_for(key.waits_for);
      demand.set_where(key.where);
      if (!key.room.is_node()) {
        demand.set_group_id(key.room.group.binary());
        demand.set_bundle_index(key.room.index);
      }
      found = rows_.emplace(std::move(key), std::move(demand)).first;
    }
    found->second.set_count(found->second.count() + count);
  }

  const NodeCore& core_;
  proto::ResourceReport* report_;
  std::map<Key, proto::Demand> rows_;
};

void NodeCore::fill_report(proto::ResourceReport* report) const {
  report->set_node_id(me_.id.binary());
  report->set_incarnation(rooms_.version());
  if (drain_) *report->mutable_drain() = *drain_;
  auto& available = *report->mutable_available()->mutable_units();
  // Resources of actors that are starting are reported as free. The head accounts for them itself
  // from the moment it chooses this node, and would otherwise subtract them twice. It does not
  // account for what actors hold in bundles.
  ResourceSet free = resources().available();
  for (const auto& [id, actor] : actors_.all()) {
    if (!actor.room.is_node()) continue;
    if (actor.state == HostedActor::State::kWaitingWorker) free.add(actor.placement);
    const Worker* worker =
        actor.state == HostedActor::State::kStarting ? workers_.pool().find(actor.worker) : nullptr;
    if (worker && worker->state == WorkerState::kActor) free.add(releasable_resources(*worker));
  }
  for (const auto& [name, units] : free.all()) {
    if (units > 0 && !drain_) available[name] = units;
  }
  rooms_.bundles().reserved().to_proto(report->mutable_reserved());
  rooms_.bundles().reserved_used().to_proto(report->mutable_reserved_used());
  DemandRows rows(*this, report);
  for (const auto& [key, demand] : leases_.queue().all()) {
    if (demand.want > 0) rows.add(demand);
  }
  // Many equal actors may wait in a row, and are added together.
  const HostedActor* first = nullptr;
  int64_t in_a_row = 0;
  for (const ActorId& id : actors_.waiting()) {
    const HostedActor& actor = actors_.at(id);
    if (!first || actor.state != first->state || actor.kind != first->kind ||
        actor.room != first->room || !(actor.placement == first->placement)) {
      if (first) rows.add(*first, in_a_row);
      first = &actor;
      in_a_row = 0;
    }
    ++in_a_row;
  }
  if (first) rows.add(*first, in_a_row);
  rows.finish();
}

}  // namespace rt::node
