#include "worker/core/locality.h"

#include <algorithm>
#include <map>

namespace rt::worker {

namespace {

struct Places {
  int64_t total = 0;
  // For each node, the bytes of the arguments that it holds.
  std::map<NodeId, int64_t> bytes_at;
};

Places places_of(std::vector<const ObjectEntry*>& args) {
  std::sort(args.begin(), args.end());
  args.erase(std::unique(args.begin(), args.end()), args.end());
  Places places;
  for (const ObjectEntry* arg : args) {
    places.total += arg->size;
    for (const ObjectLocation& location : arg->details().locations)
      places.bytes_at[location.node] += arg->size;
  }
  return places;
}

std::optional<NodeId> most_of(const std::map<NodeId, int64_t>& bytes_at) {
  auto most = std::max_element(bytes_at.begin(), bytes_at.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes_at.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace

bool may_prefer_node(const Task& task) {
  const proto::TaskTemplate& spec = task.function->spec;
  return spec.strategy() == proto::DEFAULT && !spec.has_constraint() && spec.group_id().empty();
}

bool may_move_to_arguments(const Task& task) {
  const proto::TaskTemplate& spec = task.function->spec;
  if (task.cancelled || spec.has_constraint() || !spec.group_id().empty()) return false;
  return !task.own_class || task.own_class->constraint->spill_on_unavailable();
}

SchedulingClass* class_at(Submitter& submitter, const Task& task, const NodeId& node,
                          bool others_too) {
  proto::TaskTemplate there = task.function->spec;
  there.clear_strategy();
  there.mutable_constraint()->set_node_id(node.binary());
  there.mutable_constraint()->set_soft(true);
  there.mutable_constraint()->set_spill_on_unavailable(others_too);
  return submitter.scheduling_class(there);
}

std::optional<PreferredNode> preferred_node(std::vector<const ObjectEntry*> args,
                                            const NodeId& here, int64_t store_bytes) {
  // Cheap and nearly always enough, although it counts twice what occurs twice.
  int64_t elsewhere = 0;
  for (const ObjectEntry* arg : args) {
    if (!arg->is_on(here)) elsewhere += arg->size;
  }
  if (elsewhere < kLightBytes) return std::nullopt;
  Places places = places_of(args);
  if (places.total - places.bytes_at[here] < kLightBytes) return std::nullopt;
  const bool fits_here = places.total <= store_bytes;
  if (!fits_here) places.bytes_at.erase(here);
  auto most = most_of(places.bytes_at);
  if (!most || *most == here) return std::nullopt;
  return PreferredNode{*most, fits_here};
}

std::optional<NodeId> node_beside(std::vector<const ObjectEntry*> args,
                                  const std::function<bool(const NodeId&)>& may_run) {
  Places places = places_of(args);
  std::erase_if(places.bytes_at, [&](const auto& place) { return !may_run(place.first); });
  return most_of(places.bytes_at);
}

}  // namespace rt::worker
