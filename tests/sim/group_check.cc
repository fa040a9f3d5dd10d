#include "tests/sim/group_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace rt::sim {
namespace {

using Infos = std::map<GroupId, proto::GroupInfo>;

std::string name_of(const GroupId& id) { return "group " + id.hex().substr(0, 8); }

bool waits(const proto::GroupInfo& info) {
  return info.state() == proto::GROUP_PENDING || info.state() == proto::GROUP_RESCHEDULING;
}

// Looks for nodes for the bundles of a group that have none, by trial.
class Search {
 public:
  Search(Scenario& s, const proto::GroupInfo& info) : info_(info) {
    for (SimNode* node : s.nodes()) {
      nodes_.push_back(node->id());
      free_.push_back(node->core().view().resources().available());
    }
    for (int i = 0; i < info.spec().bundles_size(); ++i) {
      wanted_.push_back(ResourceSet::from_proto(info.spec().bundles(i).resources()));
      placed_.push_back(std::nullopt);
      if (i >= info.bundle_nodes_size() || info.bundle_nodes(i).empty()) continue;
      const NodeId at = NodeId::from_binary(info.bundle_nodes(i));
      auto node = std::find(nodes_.begin(), nodes_.end(), at);
      if (node != nodes_.end()) placed_.back() = static_cast<size_t>(node - nodes_.begin());
    }
  }

  bool succeeds(size_t from = 0) {
    while (from < placed_.size() && placed_[from]) ++from;
    if (from == placed_.size()) return true;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (!free_[node].contains(wanted_[from]) || !allowed(node)) continue;
      free_[node].subtract(wanted_[from]);
      placed_[from] = node;
      if (succeeds(from + 1)) return true;
      placed_[from].reset();
      free_[node].add(wanted_[from]);
    }
    return false;
  }

  bool wants_gpus() const {
    return std::any_of(wanted_.begin(), wanted_.end(),
                       [](const ResourceSet& bundle) { return bundle.units("GPU") > 0; });
  }

 private:
  bool allowed(size_t node) const {
    const auto strategy = info_.spec().strategy();
    return std::all_of(placed_.begin(), placed_.end(), [&](const auto& other) {
      if (!other) return true;
      if (strategy == proto::GroupSpec::STRICT_PACK) return *other == node;
      return strategy != proto::GroupSpec::STRICT_SPREAD || *other != node;
    });
  }

  const proto::GroupInfo& info_;
  std::vector<NodeId> nodes_;
  std::vector<ResourceSet> free_, wanted_;
  std::vector<std::optional<size_t>> placed_;
};

std::string nodes_unsettled(Scenario& s) {
  if (!s.world().head) return "the head is down";
  for (SimNode* node : s.nodes()) {
    const head::NodeState* seen = s.head().core().view().cluster().find(node->id());
    if (!seen || !seen->usable())
      return fmt::format("the head has no connection to node #{}", node->number());
  }
  for (const auto& [id, node] : s.head().core().view().cluster().nodes()) {
    if (node.alive() && !s.world().nodes.contains(id))
      return fmt::format("the head believes that node {} is alive", id.hex().substr(0, 8));
  }
  return "";
}

// Compares what each node holds with what the head says of it.
std::string held_unsettled(Scenario& s, const Infos& infos) {
  for (SimNode* node : s.nodes()) {
    for (const auto& [key, bundle] : node->core().view().bundles().all()) {
      auto info = infos.find(key.group);
      const std::string what =
          fmt::format("node #{} holds bundle {} of {} with epoch {}", node->number(), key.index,
                      name_of(key.group), bundle.epoch);
      if (info == infos.end()) return what + ", which the head does not know";
      if (bundle.returning) return what + ", which is being returned";
      const proto::GroupInfo& group = info->second;
      if (key.index >= group.bundle_nodes_size() ||
          group.bundle_nodes(key.index) != node->id().view() ||
          group.bundle_epochs(key.index) != bundle.epoch)
        return what + ", which is elsewhere for the head";
    }
  }
  return "";
}

// Looks for demand of living owners at nodes that have none of the bundles, although the owners
// know which nodes have them.
std::string demand_unsettled(Scenario& s, const Infos& infos) {
  for (SimNode* node : s.nodes()) {
    for (const auto& [key, demand] : node->core().view().leases().all()) {
      if (demand.want == 0 || demand.room.is_node()) continue;
      auto info = infos.find(demand.room.group);
      if (info == infos.end() || info->second.state() != proto::GROUP_CREATED) continue;
      bool here = false;
      for (int i = 0; i < info->second.bundle_nodes_size(); ++i)
        here |= (demand.room.index < 0 || demand.room.index == i) &&
                info->second.bundle_nodes(i) == node->id().view();
      if (!here)
        return fmt::format("node #{} is asked for a lease in bundle {} of {}, which it has not",
                           node->number(), demand.room.index, name_of(demand.room.group));
    }
  }
  return "";
}

std::string group_unsettled(Scenario& s, const GroupId& id, const GroupRecord& group,
                            const proto::GroupInfo* info, bool gpus_in_pieces) {
  if ((group.doomed && !group.uncertain) || !info) {
    if (info)
      return fmt::format("{} must go, but is {}", name_of(id), GroupState_Name(info->state()));
    if (!group.doomed && !group.uncertain) return name_of(id) + " is not known to the head";
    for (const auto& [worker_id, worker] : s.world().workers) {
      if (worker->in_group().group == id)
        return fmt::format("worker #{} works in {}, which must go", worker->number(), name_of(id));
    }
    return "";
  }
  for (int i = 0; i < info->bundle_nodes_size(); ++i) {
    if (info->bundle_nodes(i).empty()) continue;
    auto node = s.world().nodes.find(NodeId::from_binary(info->bundle_nodes(i)));
    const node::Bundle* bundle = node == s.world().nodes.end()
                                     ? nullptr
                                     : node->second->core().view().bundles().find({id, i});
    if (!bundle || bundle->epoch != info->bundle_epochs(i))
      return fmt::format("bundle {} of {} is not where the head says", i, name_of(id));
  }
  const int placed =
      static_cast<int>(std::count_if(info->bundle_nodes().begin(), info->bundle_nodes().end(),
                                     [](auto& n) { return !n.empty(); }));
  if (info->state() == proto::GROUP_CREATED) {
    if (placed == info->spec().bundles_size()) return "";
    return fmt::format("{} is created with {} bundles", name_of(id), placed);
  }
  if (!waits(*info)) return fmt::format("{} is {}", name_of(id), GroupState_Name(info->state()));
  if (info->state() == proto::GROUP_PENDING && placed > 0)
    return fmt::format("{} is pending and has {} bundles", name_of(id), placed);
  Search search(s, *info);
  if (gpus_in_pieces && search.wants_gpus()) return "";
  if (!search.succeeds()) return "";
  return fmt::format("{} waits although there is room for it; the head says: {}", name_of(id),
                     info->why());
}

// The state in which the head knows the actor of a call.
std::string actor_of(Scenario& s, const TaskRecord& task) {
  if (task.actor.is_nil()) return "";
  std::string state = "not known to the head";
  const auto known = s.head().core().view().list_actors({});
  for (const proto::ActorInfo& actor : known->actors()) {
    if (actor.spec().actor_id() == task.actor.view()) state = ActorState_Name(actor.state());
  }
  return fmt::format("; its actor {} is {}", task.actor.hex(), state);
}

std::string task_unsettled(Scenario& s, const TaskId& id, const Infos& infos) {
  const TaskRecord& task = s.ledger().task(id);
  const GroupId& group =
      task.actor.is_nil() ? task.plan.group : s.ledger().actor(task.actor).plan.group;
  auto late = [&](const std::string& where) {
    return fmt::format("task {} has not ended{}{}", id.hex().substr(0, 16), where,
                       actor_of(s, task));
  };
  if (!group.is_nil()) {
    if (s.ledger().groups().at(group).uncertain) return "";
    // As with Ray, what is submitted or retried after the removal of its group waits for ever.
    // For a process that heard of the removal first, everything is submitted after it.
    const bool may_wait =
        task.actor.is_nil() && (task.late || task.executions + task.incidents > 0 ||
                                task.owner != s.ledger().groups().at(group).owner);
    if (s.ledger().groups().doomed(group)) return may_wait ? "" : late(" in a group that must go");
    auto info = infos.find(group);
    return info == infos.end() || waits(info->second) ? "" : late(" in " + name_of(group));
  }
  // It may wait for a child or an actor that waits for room.
  if (!task.running_on.empty() || !task.actor.is_nil()) return "";
  for (SimNode* node : s.nodes()) {
    if (node->core().view().resources().available().contains(task.plan.resources))
      return late(fmt::format(" though node #{} has room for it", node->number()));
  }
  return "";
}

}  // namespace

std::string groups_unsettled(Scenario& s, bool gpus_in_pieces) {
  if (std::string why = nodes_unsettled(s); !why.empty()) return why;
  Infos infos;
  const proto::ListGroupsReply list = s.head().core().view().list_groups();
  for (const proto::GroupInfo& info : list.groups()) {
    if (info.state() != proto::GROUP_REMOVED)
      infos[GroupId::from_binary(info.spec().group_id())] = info;
  }
  if (std::string why = held_unsettled(s, infos); !why.empty()) return why;
  if (std::string why = demand_unsettled(s, infos); !why.empty()) return why;
  for (const auto& [id, group] : s.ledger().groups().all()) {
    auto info = infos.find(id);
    std::string why = group_unsettled(s, id, group, info == infos.end() ? nullptr : &info->second,
                                      gpus_in_pieces);
    if (!why.empty()) return why;
  }
  for (const TaskId& id : s.ledger().open()) {
    if (std::string why = task_unsettled(s, id, infos); !why.empty()) return why;
  }
  return "";
}

}  // namespace rt::sim
