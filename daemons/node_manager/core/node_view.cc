#include "daemons/node_manager/core/node_view.h"

#include <fmt/core.h>

#include <map>
#include <tuple>

namespace rt::node {

// The demands of a report: those that people cannot tell apart are added together.
class NodeView::DemandRows {
 public:
  DemandRows(const Parts& node, proto::ResourceReport* report) : node_(node), report_(report) {}

  void add(const Demand& demand) {
    // The head is told how many tasks wait; `want` alone is only how many workers would do.
    add({demand.resources, demand.infeasible.since_us >= 0, obstacle_of(demand),
         scheduling::where_of(demand.constraint.get()), demand.room},
        std::max<int64_t>(demand.want, demand.backlog), demand.what);
  }
  void add(const HostedActor& actor, int64_t count) {
    std::string waits_for;
    if (actor.state == HostedActor::State::kWaitingWorker) {
      waits_for = node_.workers.starts().describe(actor.kind);
    } else if (!actor.room.is_node()) {
      waits_for = node_.rooms.bundles().obstacle(actor.room, actor.placement);
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
      case Demand::Lacks::kWorker: return node_.workers.starts().describe(demand.kind);
      case Demand::Lacks::kTurn:
        return "others that have waited longer: what it needs is free, but is kept for them";
    }
    if (demand.room.is_node()) return "";
    if (demand.unplaced())
      return bundle_name(demand.room) + ": the group has no place yet, or was removed";
    if (node_.drain) return bundle_name(demand.room) + ": its node is leaving the cluster";
    if (demand.target.excludes_this_node)
      return bundle_name(demand.room) + " on another node: this one does not match";
    return node_.rooms.bundles().obstacle(demand.room, demand.resources,
                                          demand.target.newest_epoch);
  }
  void add(Key key, int64_t count, const std::string& what) {
    auto found = rows_.find(key);
    if (found == rows_.end()) {
      if (static_cast<int64_t>(rows_.size()) >= node_.settings.demands_per_node)
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

  const Parts& node_;
  proto::ResourceReport* report_;
  std::map<Key, proto::Demand> rows_;
};

std::string NodeView::busy_with() const {
  std::string all;
  auto add = [&](size_t count, const char* what) {
    if (count > 0)
      all += fmt::format("{}{} {}{}", all.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
  };
  add(leases().leases().size(), "leased worker");
  add(actors().size(), "actor");
  add(bundles().size(), "bundle");
  add(node_.job_holds.all().size(), "job entrypoint");
  add(static_cast<size_t>(pool().count(WorkerState::kDriver)), "driver");
  return all;
}

void NodeView::fill_report(proto::ResourceReport* report) const {
  report->set_node_id(node_.me.id.binary());
  report->set_incarnation(node_.rooms.version());
  if (drain()) *report->mutable_drain() = *drain();
  auto& available = *report->mutable_available()->mutable_units();
  // Resources of actors that are starting are reported as free. The head accounts for them itself
  // from the moment it chooses this node, and would otherwise subtract them twice. It does not
  // account for what actors hold in bundles.
  ResourceSet free = resources().available();
  for (const auto& [id, actor] : actors()) {
    if (!actor.room.is_node()) continue;
    if (actor.state == HostedActor::State::kWaitingWorker) free.add(actor.placement);
    const Worker* worker =
        actor.state == HostedActor::State::kStarting ? pool().find(actor.worker) : nullptr;
    if (worker && worker->state == WorkerState::kActor) free.add(releasable_resources(*worker));
  }
  for (const auto& [name, units] : free.all()) {
    if (units > 0 && !drain()) available[name] = units;
  }
  bundles().reserved().to_proto(report->mutable_reserved());
  bundles().reserved_used().to_proto(report->mutable_reserved_used());
  DemandRows rows(node_, report);
  for (const auto& [key, demand] : leases().all()) {
    if (demand.want > 0) rows.add(demand);
  }
  // Many equal actors may wait in a row, and are added together.
  const HostedActor* first = nullptr;
  int64_t in_a_row = 0;
  for (const ActorId& id : node_.actors.waiting()) {
    const HostedActor& actor = node_.actors.at(id);
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
