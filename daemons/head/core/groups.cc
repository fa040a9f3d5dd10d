#include "daemons/head/core/groups.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::head {
namespace {

using Phase = Group::Phase;

bool legal(Phase from, Phase to) {
  switch (from) {
    case Phase::kCommitting:
      return to == Phase::kQueued || to == Phase::kWaiting || to == Phase::kCreated ||
             to == Phase::kRemoved;
    case Phase::kWaiting:
      return to == Phase::kQueued || to == Phase::kWaiting || to == Phase::kRemoved;
    case Phase::kQueued:
      return to == Phase::kPreparing || to == Phase::kWaiting || to == Phase::kRemoved;
    case Phase::kPreparing:
      return to == Phase::kRecording || to == Phase::kWaiting || to == Phase::kRemoved;
    case Phase::kRecording:
      return to == Phase::kCreated || to == Phase::kWaiting || to == Phase::kRemoved;
    case Phase::kCreated: return to == Phase::kWaiting || to == Phase::kRemoved;
    case Phase::kRemoved: return false;
  }
  return false;
}

proto::GroupState state_of(const Group& group) {
  switch (group.phase) {
    case Phase::kCreated: return proto::GROUP_CREATED;
    case Phase::kRemoved: return proto::GROUP_REMOVED;
    case Phase::kRecording:
      return group.was_created ? proto::GROUP_RESCHEDULING : proto::GROUP_PREPARED;
    default: return group.was_created ? proto::GROUP_RESCHEDULING : proto::GROUP_PENDING;
  }
}

// Returns the key of the group's queue. If the group has lost bundles, the places of the others are
// a part of it.
std::string shape_of(const Group& group) {
  if (!group.was_created) return group.bundles.key;
  std::string shape = group.bundles.key + '@';
  for (const std::string& node : group.info.bundle_nodes())
    shape += node.empty() ? std::string(NodeId::kSize, '\0') : node;
  return shape;
}

template <class Map, class Key>
void set_entry(Map& map, const Key& key, const GroupId& group, bool add) {
  if (add) {
    map[key].insert(group);
    return;
  }
  auto it = map.find(key);
  if (it == map.end()) return;
  it->second.erase(group);
  if (it->second.empty()) map.erase(it);
}

}  // namespace

bool GroupAttempt::all_held() const {
  return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.second.held; });
}

bool GroupAttempt::has(const NodeId& node, int index) const {
  auto part = parts.find(node);
  if (part == parts.end()) return false;
  const std::vector<int>& indexes = part->second.indexes;
  return std::find(indexes.begin(), indexes.end(), index) != indexes.end();
}

NodeId Group::node_of(int bundle) const {
  if (removed() || bundle < 0 || bundle >= info.bundle_nodes_size() ||
      info.bundle_nodes(bundle).empty())
    return NodeId::nil();
  return NodeId::from_binary(info.bundle_nodes(bundle));
}

ResourceSet Group::sum_of(const std::vector<int>& indexes) const {
  ResourceSet sum;
  for (int index : indexes) sum.add(bundles.resources(static_cast<size_t>(index)));
  return sum;
}

std::string Group::label() const {
  return info.spec().name().empty() ? id.hex() : fmt::format("'{}'", info.spec().name());
}

bool Group::ends_with_owner() const {
  const proto::GroupSpec& spec = info.spec();
  return spec.outlives_job() && !spec.detached() && spec.creator_actor_id().empty();
}

Group* GroupDirectory::find(const GroupId& id) {
  auto it = groups_.find(id);
  return it == groups_.end() ? nullptr : &it->second;
}

const Group* GroupDirectory::find(const GroupId& id) const {
  auto it = groups_.find(id);
  return it == groups_.end() ? nullptr : &it->second;
}

Group* GroupDirectory::find_named(const std::string& ray_namespace, const std::string& name) {
  auto it = names_.find({ray_namespace, name});
  return it == names_.end() ? nullptr : find(it->second);
}

const Group* GroupDirectory::find_named(const std::string& ray_namespace,
                                        const std::string& name) const {
  auto it = names_.find({ray_namespace, name});
  return it == names_.end() ? nullptr : find(it->second);
}

Group& GroupDirectory::add(proto::GroupInfo info) {
  GroupId id = GroupId::from_binary(info.spec().group_id());
  auto [it, added] = groups_.try_emplace(id);
  RT_CHECK(added);
  Group& group = it->second;
  group.id = id;
  group.job = JobId::from_binary(info.spec().job_id());
  group.bundles = scheduling::BundleSet(info.spec());
  group.info = std::move(info);
  group.info.set_state(proto::GROUP_PENDING);
  next_version(group);
  ++counts_[static_cast<size_t>(proto::GROUP_PENDING)];
  if (!group.info.spec().name().empty()) {
    bool free =
        names_.try_emplace({group.info.spec().ray_namespace(), group.info.spec().name()}, id)
            .second;
    RT_CHECK(free);
  }
  index(group, true);
  return group;
}

void GroupDirectory::index(Group& group, bool add) {
  const proto::GroupSpec& spec = group.info.spec();
  set_entry(by_job_, group.job, group.id, add);
  if (ActorId::is_valid(spec.creator_actor_id()))
    set_entry(by_creator_, ActorId::from_binary(spec.creator_actor_id()), group.id, add);
  if (group.ends_with_owner() && WorkerId::is_valid(spec.owner().worker_id()))
    set_entry(by_owner_, WorkerId::from_binary(spec.owner().worker_id()), group.id, add);
}

void GroupDirectory::index_nodes(Group& group) {
  std::set<NodeId> now;
  for (int i = 0; i < group.info.bundle_nodes_size(); ++i) {
    if (const NodeId node = group.node_of(i); !node.is_nil()) now.insert(node);
  }
  if (group.attempt) {
    for (const auto& [node, part] : group.attempt->parts) now.insert(node);
  }
  for (const NodeId& node : group.nodes) {
    if (!now.contains(node)) set_entry(by_node_, node, group.id, false);
  }
  for (const NodeId& node : now) {
    if (!group.nodes.contains(node)) set_entry(by_node_, node, group.id, true);
  }
  group.nodes = std::move(now);
}

void GroupDirectory::set_nodes(Group& group, const std::vector<NodeId>& nodes,
                               const std::vector<int64_t>& epochs) {
  group.info.clear_bundle_nodes();
  for (const NodeId& node : nodes) group.info.add_bundle_nodes(node.is_nil() ? "" : node.binary());
  group.info.clear_bundle_epochs();
  for (int64_t epoch : epochs) group.info.add_bundle_epochs(epoch);
  next_version(group);
  index_nodes(group);
}

void GroupDirectory::leave(Group& group) {
  if (group.phase != Phase::kQueued) return;
  auto it = queues_.find(group.shape);
  it->second.groups.erase(group.queue_seq);
  if (it->second.groups.empty()) queues_.erase(it);
}

void GroupDirectory::enter(Group& group) {
  switch (group.phase) {
    case Phase::kQueued:
      // A group that nodes refused keeps its place in the queue.
      if (!group.queue_seq) group.queue_seq = ++last_seq_;
      group.shape = shape_of(group);
      queues_[group.shape].groups.emplace(group.queue_seq, &group);
      break;
    case Phase::kCreated:
      group.was_created = true;
      group.queue_seq = 0;
      group.refusals = 0;
      break;
    case Phase::kRemoved:
      index(group, false);
      if (!group.info.spec().name().empty())
        names_.erase({group.info.spec().ray_namespace(), group.info.spec().name()});
      group.attempt.reset();
      group.recording.reset();
      index_nodes(group);
      removed_.push_back(group.id);
      break;
    default: break;
  }
}

void GroupDirectory::move(Group& group, Phase to) {
  RT_CHECK(legal(group.phase, to));
  leave(group);
  group.phase = to;
  enter(group);
  const proto::GroupState state = state_of(group);
  if (state == group.info.state()) return;
  --counts_[static_cast<size_t>(group.info.state())];
  ++counts_[static_cast<size_t>(state)];
  group.info.set_state(state);
  next_version(group);
}

void GroupDirectory::forget_removed(size_t limit) {
  while (removed_.size() > limit) {
    groups_.erase(removed_.front());
    removed_.pop_front();
    --counts_[static_cast<size_t>(proto::GROUP_REMOVED)];
  }
}

namespace {

template <class Map, class Key>
std::vector<GroupId> groups_in(const Map& map, const Key& key) {
  auto it = map.find(key);
  if (it == map.end()) return {};
  return {it->second.begin(), it->second.end()};
}

}  // namespace

std::vector<Group*> GroupDirectory::of_job(const JobId& job) {
  std::vector<Group*> out;
  for (const GroupId& id : groups_in(by_job_, job)) out.push_back(find(id));
  return out;
}

std::vector<Group*> GroupDirectory::created_by(const ActorId& creator) {
  std::vector<Group*> out;
  for (const GroupId& id : groups_in(by_creator_, creator)) out.push_back(find(id));
  return out;
}

std::vector<Group*> GroupDirectory::owned_by(const WorkerId& owner) {
  std::vector<Group*> out;
  for (const GroupId& id : groups_in(by_owner_, owner)) out.push_back(find(id));
  return out;
}

std::vector<Group*> GroupDirectory::on_node(const NodeId& node) {
  std::vector<Group*> out;
  for (const GroupId& id : groups_in(by_node_, node)) out.push_back(find(id));
  return out;
}

void GroupDirectory::check_invariants() const {
  size_t named = 0, removed = 0, queued = 0, on_nodes = 0, living = 0;
  std::array<int64_t, proto::GroupState_ARRAYSIZE> counts{};
  for (const auto& [id, group] : groups_) {
    RT_CHECK(group.id == id && group.info.state() == state_of(group));
    ++counts[static_cast<size_t>(group.info.state())];
    removed += group.removed();
    living += !group.removed();
    queued += group.phase == Phase::kQueued;
    named += !group.removed() && !group.info.spec().name().empty();
    on_nodes += group.nodes.size();
    for (const NodeId& node : group.nodes) RT_CHECK(by_node_.at(node).contains(id));
    RT_CHECK(group.attempt.has_value() ==
             (group.phase == Phase::kPreparing || group.phase == Phase::kRecording));
    RT_CHECK(group.recording.has_value() == (group.phase == Phase::kRecording));
    if (group.phase == Phase::kRecording) RT_CHECK(group.attempt->all_held() && group.on_disk);
    size_t placed = 0;
    for (int i = 0; i < group.info.bundle_nodes_size(); ++i) placed += !group.node_of(i).is_nil();
    RT_CHECK((group.phase == Phase::kCreated) == (placed == group.bundles.size()));
    if (!group.was_created) RT_CHECK(placed == 0);
    if (!group.removed()) RT_CHECK(by_job_.at(group.job).contains(id));
  }
  RT_CHECK(named == names_.size() && removed == removed_.size() && counts == counts_);
  for (const auto& [shape, queue] : queues_) {
    RT_CHECK(!queue.groups.empty());
    for (const auto& [seq, group] : queue.groups)
      RT_CHECK(group->phase == Phase::kQueued && group->queue_seq == seq && group->shape == shape);
    queued -= queue.groups.size();
  }
  RT_CHECK(queued == 0);
  for (const auto& [node, ids] : by_node_) on_nodes -= ids.size();
  for (const auto& [job, ids] : by_job_) living -= ids.size();
  RT_CHECK(on_nodes == 0 && living == 0);
}

}  // namespace rt::head
