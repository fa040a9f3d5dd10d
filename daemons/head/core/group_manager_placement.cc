// Finds nodes for queued groups, has them reserve the bundles, and records the outcome. See
// group_manager.h.
#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "daemons/head/core/group_manager.h"
#include "daemons/head/core/group_messages.h"

namespace rt::head {

using scheduling::Amount, scheduling::BundleNodes, scheduling::BundleShortage, scheduling::kNoNode,
    scheduling::NodeSlot;

namespace {

// One pass looks for nodes for at most so many shapes; the next ones are left to the next pass.
constexpr size_t kShapesPerPass = 200;
constexpr int64_t kPassPauseUs = 50'000;  // The pause between passes that are not complete.
constexpr int kMostDoublings = 4;
// A group forgets the choices that nodes have refused when it knows so many of a node.
constexpr size_t kRefusedGpusKept = 100;

// Tells the drivers of infeasible groups, once for each shape and job.
void warn_infeasible(GroupQueue& queue, const Cluster& cluster,
                     const Subscriptions& subscriptions) {
  std::optional<BundleShortage> shortage;
  for (auto at = queue.groups.upper_bound(queue.warned_up_to); at != queue.groups.end(); ++at) {
    const Group& group = *at->second;
    if (!queue.warned.contains(group.job)) {
      if (!shortage) shortage = shortage_of(group, cluster);
      if (!shortage->infeasible) return;
      queue.warned.insert(group.job);
      subscriptions.publish_notice(
          group.job, "warning",
          fmt::format("The placement group {} cannot be placed: {}. It stays pending until nodes "
                      "with these resources join; see `rayctl status`, or ask for less.",
                      scheduling::shortened(group.label()), shortage->why));
    }
    queue.warned_up_to = at->first;
  }
}

// Remembers that the node refused this choice of GPUs. The node may have as many GPUs free, but not
// in the devices that were chosen.
void remember_refusal(Group& group, const NodeId& node, const std::vector<int>& indexes) {
  scheduling::GpuDemands gpus;
  for (int index : indexes) {
    const int64_t units = group.bundles.resources(static_cast<size_t>(index)).units("GPU");
    if (units > 0) gpus.push_back(units);
  }
  if (gpus.empty()) return;
  std::sort(gpus.begin(), gpus.end(), std::greater<>());
  std::vector<scheduling::GpuDemands>& refused = group.refused_gpus[node];
  if (refused.size() >= kRefusedGpusKept) refused.clear();
  refused.push_back(std::move(gpus));
}

// A group that is `patient` may also go to nodes where only tasks are in the way: there it queues
// at the node-manager, which takes leases back for it.
std::optional<BundleNodes> find_nodes(const Group& group, const Cluster& cluster, bool patient,
                                      const scheduling::RefusedGpus& refused) {
  const BundleNodes stay = kept_nodes(group, cluster);
  const scheduling::Nodes& nodes = cluster.candidates();
  auto found = assign_bundles(group.bundles, stay, nodes, Amount::kFree, refused);
  if (!found && patient)
    found = assign_bundles(group.bundles, stay, nodes, Amount::kBesideActors, refused);
  return found;
}

}  // namespace

void GroupManager::queue(Group& group, Now now) {
  group.recovered = false;
  group.info.clear_why();
  if (!group.queue_seq) group.queued_since_us = now.steady_us;
  directory_.move(group, Phase::kQueued);
  // A group that joins a queue behind others cannot be placed before them, so only the first group
  // of a shape makes the shape worth a look.
  if (directory_.queues().at(group.shape).groups.size() == 1) fresh_.push_back(group.shape);
}

// Tries the choices that nodes refused again once no other choice is left, because those nodes may
// have room by now.
bool GroupManager::place_shape(GroupQueue& queue, Now now) {
  const Settings& settings = env_.options.settings;
  // The queue disappears with its last group, so the loop counts instead of testing for emptiness.
  for (size_t left = queue.groups.size(); left > 0; --left) {
    Group& oldest = *queue.groups.begin()->second;
    const int64_t waited_us = now.steady_us - oldest.queued_since_us;
    const bool patient = waited_us >= settings.lease_revoke_after_ms * 1000;
    auto found = find_nodes(oldest, env_.cluster, patient, oldest.refused_gpus);
    if (!found && !oldest.refused_gpus.empty()) {
      found = find_nodes(oldest, env_.cluster, patient, {});
      if (found) oldest.refused_gpus.clear();
    }
    if (found) {
      begin_attempt(oldest, *found, now);
      continue;
    }
    const int64_t warn_after_us = settings.infeasible_warning_after_ms * 1000;
    if (waited_us >= warn_after_us && now.steady_us >= queue.warn_at_us) {
      queue.warn_at_us = now.steady_us + warn_after_us;
      warn_infeasible(queue, env_.cluster, env_.subscriptions);
    }
    return false;
  }
  return true;
}

// Looks at the new shapes, and at all shapes when something may have become free. If there are many
// shapes, passes take turns.
void GroupManager::place(Now now) {
  auto& queues = directory_.queues();
  bool some_wait = false;
  std::vector<std::string> shapes = std::exchange(fresh_, {});
  const bool all = placement_wanted_ && (last_shape_.empty() || now.steady_us >= next_pass_us_);
  for (auto it = queues.upper_bound(last_shape_);
       all && it != queues.end() && shapes.size() < kShapesPerPass; ++it)
    shapes.push_back(it->first);
  for (auto it = queues.begin();
       all && it != queues.end() && it->first <= last_shape_ && shapes.size() < kShapesPerPass;
       ++it)
    shapes.push_back(it->first);
  for (const std::string& shape : shapes) {
    if (auto at = queues.find(shape); at != queues.end())
      some_wait |= !place_shape(at->second, now);
  }
  if (all) {
    placement_wanted_ = false;
    last_shape_ = shapes.size() < kShapesPerPass ? "" : shapes.back();
    next_pass_us_ = now.steady_us + kPassPauseUs;
  }
  if (place_timer_ || (queues.empty() && !some_wait)) return;
  const int64_t interval_us =
      std::max<int64_t>(1, env_.options.settings.placement_settle_ms) * 1000;
  place_timer_ = env_.timers.at(now.steady_us + interval_us, [this](Now) {
    place_timer_ = 0;
    placement_wanted_ = true;
  });
}

void GroupManager::begin_attempt(Group& group, const BundleNodes& nodes, Now now) {
  GroupAttempt attempt;
  attempt.epoch = ++last_epoch_;
  attempt.began_us = now.steady_us;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (!group.node_of(i).is_nil()) continue;
    const NodeId& node = env_.cluster.candidates().id(nodes[static_cast<size_t>(i)]);
    GroupAttempt::Part& part = attempt.parts[node];
    part.indexes.push_back(i);
    part.amount.add(group.bundles.resources(static_cast<size_t>(i)));
  }
  group.attempt = std::move(attempt);
  group.info.set_attempts(group.info.attempts() + 1);
  directory_.move(group, Phase::kPreparing);
  directory_.index_nodes(group);
  for (const auto& [id, part] : group.attempt->parts) {
    NodeState& node = *env_.cluster.find(id);
    env_.cluster.add_bundles(node, part.amount);
    env_.cluster.reserve(node, BundleClaim{group.id, group.attempt->epoch}, part.amount);
    send_prepare(env_.sink, group, node);
  }
}

void GroupManager::prepare_answered(const NodeId& node_id, const GroupId& id, int64_t epoch,
                                    const Result<proto::PrepareBundlesReply>& reply, Now now) {
  NodeState* node = env_.cluster.find(node_id);
  if (!node || !node->alive()) return;
  Group* group = directory_.find(id);
  GroupAttempt::Part* part = nullptr;
  if (group && group->attempt && group->attempt->epoch == epoch) {
    auto at = group->attempt->parts.find(node_id);
    if (at != group->attempt->parts.end()) part = &at->second;
  }
  if (!part) {
    bool holds = false;  // A repeated answer of the attempt that placed the group.
    for (int i = 0; group && i < group->info.bundle_nodes_size(); ++i)
      holds |= group->node_of(i) == node_id && group->info.bundle_epochs(i) == epoch;
    proto::ExitInfo why;
    why.set_message("the placement group was removed or placed elsewhere meanwhile");
    if (!holds && reply && reply->ok())
      give_back(env_.sink, env_.cluster, node_id, {id, epoch, {}}, why);
    return;
  }
  if (part->held) return;
  // A broken connection says nothing about the bundles: its node comes back or dies.
  if (!reply && reply.error().code == Code::kUnavailable) return;
  if (!reply || !reply->ok()) {
    const std::string why = reply ? reply->why_not() : reply.error().message;
    remember_refusal(*group, node_id, part->indexes);
    env_.cluster.start_refused(*node, now);
    env_.cluster.cancel_reservation(*node, BundleClaim{id, epoch});
    env_.cluster.remove_bundles(*node, part->amount);
    group->attempt->parts.erase(node_id);
    cancel_attempt(*group, fmt::format("node {} refused: {}", node->info.ip(), why), now);
    return retry_later(*group, now);
  }
  part->held = true;
  env_.cluster.confirm_reservation(*node, BundleClaim{id, epoch}, part->amount);
  if (group->attempt->all_held()) write_record(*group, now);
}

void GroupManager::write_record(Group& group, Now now) {
  if (!group.recording) {
    proto::GroupInfo record = group.info;
    for (int i = record.bundle_nodes_size(); i < static_cast<int>(group.bundles.size()); ++i)
      record.add_bundle_nodes();
    record.mutable_bundle_epochs()->Resize(static_cast<int>(group.bundles.size()), 0);
    for (const auto& [node, part] : group.attempt->parts) {
      for (int index : part.indexes) {
        record.set_bundle_nodes(index, node.binary());
        record.set_bundle_epochs(index, group.attempt->epoch);
      }
    }
    record.set_state(proto::GROUP_CREATED);
    record.clear_why();
    record.set_scheduling_us(now.steady_us - group.attempt->began_us);
    if (!group.was_created)
      record.set_placed_us(std::max<int64_t>(1, now.wall_us - record.created_ms() * 1000));
    group.recording = std::move(record);
    directory_.move(group, Phase::kRecording);
  }
  persist(group);
  env_.journal.then([this, id = group.id, epoch = group.attempt->epoch](
                        const Status& status, Now when) { recorded(id, epoch, status, when); });
}

void GroupManager::recorded(const GroupId& id, int64_t epoch, const Status& status, Now now) {
  Group* group = directory_.find(id);
  if (!group || group->phase != Phase::kRecording || group->attempt->epoch != epoch) return;
  if (!status) {
    group->info.set_why("its record could not be written: " + status.error().message);
    const int64_t retry_us = env_.options.settings.storage_retry_ms * 1000;
    group->timer = env_.timers.at(now.steady_us + retry_us, [this, id, epoch](Now due) {
      Group* group = directory_.find(id);
      if (!group || group->phase != Phase::kRecording || group->attempt->epoch != epoch) return;
      group->timer = 0;
      write_record(*group, due);
    });
    return;
  }
  const proto::GroupInfo record = std::move(*group->recording);
  group->recording.reset();
  group->attempt.reset();
  group->refused_gpus.clear();
  group->info.set_placed_us(record.placed_us());
  group->info.set_scheduling_us(record.scheduling_us());
  group->info.clear_why();
  std::vector<NodeId> nodes;
  for (const std::string& node : record.bundle_nodes()) nodes.push_back(NodeId::from_binary(node));
  directory_.set_nodes(*group, nodes,
                       {record.bundle_epochs().begin(), record.bundle_epochs().end()});
  directory_.move(*group, Phase::kCreated);
  env_.subscriptions.publish_group(group->id, group->info);
  news_.created = true;
}

void GroupManager::cancel_attempt(Group& group, const std::string& why, Now) {
  proto::ExitInfo exit;
  exit.set_message(fmt::format("placement group {} is placed anew: {}", group.label(), why));
  const GroupAttempt attempt = std::move(*group.attempt);
  group.attempt.reset();
  for (const auto& [id, part] : attempt.parts) {
    if (NodeState* node = env_.cluster.find(id)) {
      env_.cluster.cancel_reservation(*node, BundleClaim{group.id, attempt.epoch});
      env_.cluster.remove_bundles(*node, part.amount);
    }
    give_back(env_.sink, env_.cluster, id, {group.id, attempt.epoch, part.indexes}, exit);
  }
  env_.timers.cancel(group.timer);
  const bool promised = group.recording.has_value();
  group.recording.reset();
  directory_.move(group, Phase::kWaiting);
  directory_.index_nodes(group);
  group.info.set_why(why);
  placement_wanted_ = true;
  if (!promised) return;
  // The record that is, or may be, on disk says that the group is created.
  if (group.was_created || !group.info.spec().name().empty()) return persist(group);
  group.on_disk = false;
  env_.journal.erase(table::kGroups, group.id.binary());
}

void GroupManager::retry_later(Group& group, Now now) {
  const int64_t pause_us = env_.options.settings.placement_settle_ms * 1000
                           << std::min(group.refusals++, kMostDoublings);
  group.timer = env_.timers.at(now.steady_us + pause_us, [this, id = group.id](Now due) {
    Group* group = directory_.find(id);
    if (!group || group->phase != Phase::kWaiting) return;
    group->timer = 0;
    queue(*group, due);
  });
}

}  // namespace rt::head
