#include "worker/core/group_view.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::worker {

namespace {

// How many tasks with these resources fit into the bundle at the same time.
int64_t capacity(const proto::BundleSpec& bundle, const ResourceSet& task) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  const ResourceSet room = ResourceSet::from_proto(bundle.resources());
  if (!room.contains(task)) return 0;
  int64_t fits = kMost;
  for (const auto& [name, units] : task.all()) {
    if (units > 0) fits = std::min<int64_t>(fits, room.units(name) / units);
  }
  return fits;
}

}  // namespace

std::vector<GroupId> GroupView::watched() const {
  std::vector<GroupId> ids;
  ids.reserve(groups_.size());
  for (const auto& [id, group] : groups_) ids.push_back(id);
  return ids;
}

bool GroupView::watch(const GroupId& id) { return groups_.try_emplace(id).second; }

bool GroupView::watch_own(const GroupId& id) {
  auto [group, added] = groups_.try_emplace(id);
  group->second.own = true;
  return added;
}

bool GroupView::owns(const GroupId& id) const {
  const Group* group = find(id);
  return group && group->own;
}

const proto::GroupSpec* GroupView::own_spec(const GroupId& id) const {
  const Group* group = find(id);
  return group && group->own && group->heard && !group->gone() ? &group->info.spec() : nullptr;
}

const GroupView::Group* GroupView::find(const GroupId& id) const {
  auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : &found->second;
}

void GroupView::unuse(const GroupId& id) {
  if (auto found = groups_.find(id); found != groups_.end()) --found->second.uses;
}

bool GroupView::update(const proto::GroupInfo& info) {
  if (!GroupId::is_valid(info.spec().group_id())) return false;
  auto found = groups_.find(GroupId::from_binary(info.spec().group_id()));
  if (found == groups_.end()) return false;
  Group& group = found->second;
  if (group.heard &&
      (info.version() <= group.info.version() || group.info.state() == proto::GROUP_REMOVED))
    return false;
  auto same = [](const auto& a, const auto& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  const bool changed = !group.heard || group.lost || group.info.state() != info.state() ||
                       !same(group.info.bundle_nodes(), info.bundle_nodes()) ||
                       !same(group.info.bundle_epochs(), info.bundle_epochs());
  group.gone_before = !group.heard && !group.lost && !group.own;
  group.heard = true;
  group.lost = false;
  group.info = info;
  if (info.state() == proto::GROUP_REMOVED) {
    // It may have thousands of bundles.
    group.info.clear_spec();
    group.info.clear_bundle_nodes();
    group.info.clear_bundle_epochs();
  }
  return changed;
}

bool GroupView::lost(const GroupId& id, const std::string& why) {
  auto found = groups_.find(id);
  if (found == groups_.end() || found->second.gone()) return false;
  Group& group = found->second;
  group.gone_before = !group.heard && !group.own;
  // The version stays, so that only newer news bring the group back.
  group.lost = true;
  group.info.set_why(why);
  return true;
}

void GroupView::forget_if_unused(const GroupId& id) {
  const Group* group = find(id);
  if (group && group->gone() && group->uses == 0) groups_.erase(id);
}

bool GroupView::heard_of(const GroupId& id) const {
  const Group* group = find(id);
  return group && (group->heard || group->lost);
}

bool GroupView::created(const GroupId& id) const {
  const Group* group = find(id);
  return group && group->heard && !group->lost && group->info.state() == proto::GROUP_CREATED;
}

bool GroupView::removed(const GroupId& id) const {
  const Group* group = find(id);
  return group && group->gone();
}

bool GroupView::gone_before(const GroupId& id) const {
  const Group* group = find(id);
  return group && group->gone() && group->gone_before;
}

std::string GroupView::why(const GroupId& id) const {
  const Group* group = find(id);
  return group ? group->info.why() : "";
}

std::vector<GroupTarget> GroupView::targets(const GroupId& id, int bundle_index,
                                            const ResourceSet& resources) const {
  const Group* group = find(id);
  std::vector<GroupTarget> out;
  const int known = !group || group->gone() ? 0
                                            : std::min(group->info.bundle_nodes_size(),
                                                       group->info.bundle_epochs_size());
  // In the order of the nodes, so that equal views give equal answers.
  struct Rooms {
    int64_t fits = 0;
    int64_t epoch = 0;
  };
  std::map<NodeId, Rooms> nodes;
  for (int i = 0; i < known; ++i) {
    const std::string& node = group->info.bundle_nodes(i);
    if ((bundle_index >= 0 && i != bundle_index) || !NodeId::is_valid(node)) continue;
    int64_t fits = i < group->info.spec().bundles_size()
                       ? capacity(group->info.spec().bundles(i), resources)
                       : 0;
    // A task that is too large for the bundle it names waits at the node of that bundle.
    if (bundle_index >= 0) fits = std::max<int64_t>(fits, 1);
    if (fits <= 0) continue;
    Rooms& rooms = nodes[NodeId::from_binary(node)];
    rooms.fits += fits;
    rooms.epoch = std::max(rooms.epoch, group->info.bundle_epochs(i));
  }
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  for (const auto& [node, rooms] : nodes)
    out.push_back({node == here_ ? NodeId::nil() : node,
                   static_cast<int>(std::min(rooms.fits, kMost)), rooms.epoch});
  if (out.empty()) out.push_back({});
  return out;
}

std::string GroupView::waits_for(const GroupId& id, int bundle_index) const {
  const Group* group = find(id);
  const std::string name = "placement group " + id.hex();
  if (!group || (!group->heard && !group->lost))
    return name + ", of which the head has not said anything yet";
  const std::string why = group->info.why().empty() ? "" : ": " + group->info.why();
  if (group->gone()) return name + ", which was removed, so that it never runs" + why;
  const int bundles = group->info.bundle_nodes_size();
  const bool here = bundle_index < 0 ||
                    (bundle_index < bundles && !group->info.bundle_nodes(bundle_index).empty());
  const std::string bundle = bundle_index < 0 ? "any bundle of " + name
                                              : fmt::format("bundle {} of {}", bundle_index, name);
  switch (group->info.state()) {
    case proto::GROUP_CREATED: return "room in " + bundle;
    case proto::GROUP_RESCHEDULING:
      return here ? "room in " + bundle : bundle + ", which was lost with its node" + why;
    default: return name + ", which is not created yet" + why;
  }
}

void GroupView::forget(const GroupId& id) { groups_.erase(id); }

}  // namespace rt::worker
