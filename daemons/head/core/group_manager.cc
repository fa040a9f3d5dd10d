#include "daemons/head/core/group_manager.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemons/head/core/group_messages.h"

namespace rt::head {
namespace {

constexpr size_t kMostNameBytes = 1'024;

Error invalid_group(std::string text) {
  return make_error(Code::kInvalid, "placement group: " + std::move(text));
}

Error was_removed(const GroupId& id) {
  return make_error(Code::kNotFound, fmt::format("placement group {} was removed", id.hex()));
}

Status check_bundle(int index, const proto::BundleSpec& bundle) {
  bool asks = false;
  for (const auto& [name, units] : bundle.resources().units()) {
    if (name.empty() || units < 0 ||
        units > static_cast<int64_t>(ResourceSet::kMaxAmount) * ResourceSet::kUnit)
      return invalid_group(
          fmt::format("bundle {} asks for an amount of '{}' that is out of range", index, name));
    asks |= units > 0;
  }
  if (!asks)
    return invalid_group(fmt::format("bundle {} asks for no resource; give it one", index));
  return {};
}

Status check_ids(const proto::GroupSpec& spec) {
  if (!GroupId::is_valid(spec.group_id()))
    return invalid_group(
        fmt::format("its id has {} bytes, not {}", spec.group_id().size(), GroupId::kSize));
  if (!JobId::is_valid(spec.job_id()))
    return invalid_group(
        fmt::format("the job id has {} bytes, not {}", spec.job_id().size(), JobId::kSize));
  if (job_of(GroupId::from_binary(spec.group_id())) != JobId::from_binary(spec.job_id()))
    return invalid_group("its id contains another job's id than the request");
  if (!spec.owner().worker_id().empty() && !WorkerId::is_valid(spec.owner().worker_id()))
    return invalid_group("the owner's worker id has a wrong size");
  if (!spec.owner().node_id().empty() && !NodeId::is_valid(spec.owner().node_id()))
    return invalid_group("the owner's node id has a wrong size");
  if (!spec.creator_actor_id().empty() && !ActorId::is_valid(spec.creator_actor_id()))
    return invalid_group("the id of the actor that creates it has a wrong size");
  return {};
}

Status check_group(const proto::GroupSpec& spec, int64_t most) {
  if (spec.bundles_size() == 0) return invalid_group("it has no bundles; give at least one");
  if (spec.bundles_size() > most)
    return invalid_group(
        fmt::format("it has {} bundles, and {} are allowed; make several groups, "
                    "or raise the head's setting placement_group_max_bundles",
                    spec.bundles_size(), most));
  if (spec.name().size() > kMostNameBytes)
    return invalid_group(
        fmt::format("its name has {} bytes, and {} are allowed; choose a shorter one",
                    spec.name().size(), kMostNameBytes));
  if (!proto::GroupSpec::Strategy_IsValid(spec.strategy()))
    return invalid_group(
        fmt::format("the strategy {} is not known; use PACK, SPREAD, STRICT_PACK "
                    "or STRICT_SPREAD",
                    static_cast<int>(spec.strategy())));
  for (int i = 0; i < spec.bundles_size(); ++i) RT_TRY(check_bundle(i, spec.bundles(i)));
  if (!spec.soft_target_node_id().empty()) {
    if (!NodeId::is_valid(spec.soft_target_node_id()))
      return invalid_group("the soft target's node id has a wrong size");
    if (spec.strategy() != proto::GroupSpec::STRICT_PACK)
      return invalid_group("a soft target node goes with the strategy STRICT_PACK only");
  }
  for (const auto& [label, how] : spec.topology_strategy()) {
    if (label.empty() || how != "STRICT_PACK")
      return invalid_group(
          fmt::format("the topology strategy of '{}' is '{}'; only STRICT_PACK is "
                      "known, for a label that has a name",
                      label, how));
  }
  return {};
}

bool waits_for_nodes(const Group& group) {
  return group.visible() && !group.removed() && group.phase != Group::Phase::kCreated;
}

}  // namespace

GroupManager::GroupManager(Env env)
    : env_(std::move(env)),
      gone_(env_.journal,
            static_cast<size_t>(std::max<int64_t>(env_.options.settings.removed_groups_kept, 1))) {
  directory_.set_gone(&gone_);
}

void GroupManager::begin(int64_t incarnation) {
  last_epoch_ = incarnation << 32;
  directory_.set_version(incarnation << 32);
}

// Groups of a job may be created while it runs, and afterwards by what outlives it. A process that
// has ended gets no group that would have ended with it, and none with a name, which it has told
// nobody because such a creation returns when the head has answered. The handle of any other may
// have left the process, so that group comes to be.
Status GroupManager::check_creator(const proto::GroupSpec& spec) const {
  const JobId job = JobId::from_binary(spec.job_id());
  const std::string& owner = spec.owner().worker_id();
  const std::string& creator = spec.creator_actor_id();
  const bool owner_known = WorkerId::is_valid(owner);
  const bool gone = (owner_known && ended_owners_.contains(WorkerId::from_binary(owner))) ||
                    (!creator.empty() && !env_.actor_lives(ActorId::from_binary(creator)));
  if (env_.jobs.running(job)) {
    if (!gone || (spec.name().empty() && !spec.outlives_job())) return {};
    return make_error(Code::kCancelled, "the process that creates the placement group has ended");
  }
  // A process that outlives its job may outlive the record of that job, too.
  if (!gone && (!creator.empty() || (spec.outlives_job() && owner_known))) return {};
  if (!env_.jobs.find(job))
    return invalid_group(fmt::format("job {} is not known to this cluster", job.hex()));
  return make_error(
      Code::kCancelled,
      fmt::format("job {} has finished: its processes create no more placement groups", job.hex()));
}

void GroupManager::add(ConnId conn, const proto::GroupSpec& spec, Now now,
                       Reply<proto::Empty> reply) {
  if (Status ids = check_ids(spec); !ids) return reply(ids.error());
  const GroupId id = GroupId::from_binary(spec.group_id());
  if (conn) {
    proto::SubscribeRequest subscribe;
    subscribe.add_group_ids(spec.group_id());
    if (Status subscribed = env_.subscriptions.add(
            conn, subscribe, env_.options.settings.subscriptions_per_connection);
        !subscribed)
      return reply(subscribed.error());
  }
  auto answer = [reply](const Status& status) {
    status ? reply(proto::Empty()) : reply(status.error());
  };
  auto fail = [&](const Error& why) {
    refuse(spec, why);
    reply(why);
  };
  // The request is a repeated one: its first answer was lost with the connection.
  if (Group* same = directory_.find(id)) {
    same->creator_conn = conn;
    if (same->phase == Phase::kCommitting) return same->on_committed.push_back(answer);
    if (conn) {
      proto::HeadEvent current;
      *current.add_groups() = same->info;
      env_.sink.push(conn, current);
    }
    if (same->removed()) {
      env_.subscriptions.group_ended(id);
      return reply(was_removed(id));
    }
    return answer({});
  }
  if (const Error* refused = gone_.refusal(id)) return fail(Error(*refused));
  if (gone_.contains(id)) return fail(was_removed(id));
  if (Status valid = check_group(spec, env_.options.settings.placement_group_max_bundles); !valid)
    return fail(valid.error());
  if (Status creator = check_creator(spec); !creator) return fail(creator.error());
  if (!spec.name().empty() && directory_.find_named(spec.ray_namespace(), spec.name()))
    return fail(make_error(
        Code::kAlreadyExists,
        fmt::format("the name '{}' is taken by another placement group of namespace '{}'; choose "
                    "another name, or use that group with ray.util.get_placement_group('{}')",
                    spec.name(), spec.ray_namespace(), spec.name())));

  proto::GroupInfo info;
  *info.mutable_spec() = spec;
  info.set_created_ms(now.wall_us / 1000);
  Group& group = directory_.add(std::move(info));
  group.creator_conn = conn;
  if (spec.name().empty()) {
    queue(group, now);
    return answer({});
  }
  group.on_committed.push_back(answer);
  persist(group);
  env_.journal.then([this, id](const Status& status, Now when) { committed(id, status, when); });
}

void GroupManager::committed(const GroupId& id, const Status& status, Now now) {
  Group* group = directory_.find(id);
  if (!group || group->phase != Phase::kCommitting) return;
  auto waiting = std::exchange(group->on_committed, {});
  if (status) {
    queue(*group, now);
    // Subscribers that came before the group was on disk have heard nothing yet.
    env_.subscriptions.publish_group(group->id, group->info);
  } else {
    end(*group, "it could not be stored: " + status.error().message, now);
  }
  for (auto& answer : waiting) answer(status);
}

// Tells everyone who follows the group that it will not exist.
void GroupManager::refuse(const proto::GroupSpec& spec, const Error& why) {
  const GroupId id = GroupId::from_binary(spec.group_id());
  gone_.refuse(id, why);
  proto::GroupInfo info;
  *info.mutable_spec() = spec;
  info.set_state(proto::GROUP_REMOVED);
  info.set_why(why.message);
  info.set_version(directory_.version() + 1);
  env_.subscriptions.publish_group(id, info);
  env_.subscriptions.group_ended(id);
}

void GroupManager::remove(ConnId conn, const proto::GroupRequest& request, Now now,
                          Reply<proto::Empty> reply) {
  if (!GroupId::is_valid(request.group_id()))
    return reply(invalid_group(
        fmt::format("its id has {} bytes, not {}", request.group_id().size(), GroupId::kSize)));
  const GroupId id = GroupId::from_binary(request.group_id());
  Group* group = directory_.find(id);
  if (group && !group->removed()) {
    if (group->creator_conn != conn) gone_.keep(id);
    end(*group, "it was removed", now);
  } else if (!group && gone_.add(id)) {
    // Either the group's creator has not found this head yet, or the group never existed.
    gone_.keep(id);
    write_end(id);
    news_.removed.emplace_back(id, fmt::format("placement group {}: it was removed", id.hex()));
  }
  auto ending = ending_.find(id);
  if (ending == ending_.end()) return reply(proto::Empty());
  ending->second.push_back(std::move(reply));
}

// Ends the group for good: its nodes kill everything that runs in it.
void GroupManager::end(Group& group, const std::string& why, Now now) {
  proto::ExitInfo exit;
  exit.set_kind(proto::ExitInfo::GROUP_REMOVED);
  exit.set_message(fmt::format("placement group {}: {}", group.label(), why));
  for (const NodeId& node : group.nodes) {
    std::vector<int> here;
    for (int i = 0; i < static_cast<int>(group.bundles.size()); ++i) {
      if (group.node_of(i) == node) here.push_back(i);
    }
    // The node may have died a moment ago, before the group was told.
    if (NodeState* state = env_.cluster.find(node)) {
      for (int64_t epoch :
           std::set<int64_t>(group.info.bundle_epochs().begin(), group.info.bundle_epochs().end()))
        env_.cluster.cancel_reservation(*state, BundleClaim{group.id, epoch});
      env_.cluster.remove_bundles(*state, group.sum_of(here));
      if (group.attempt) {
        if (auto part = group.attempt->parts.find(node); part != group.attempt->parts.end()) {
          env_.cluster.cancel_reservation(*state, BundleClaim{group.id, group.attempt->epoch});
          env_.cluster.remove_bundles(*state, part->second.amount);
        }
      }
    }
    give_back(env_.sink, env_.cluster, node, {group.id, last_epoch_, {}}, exit);
  }
  env_.timers.cancel(group.timer);
  auto waiting = std::exchange(group.on_committed, {});
  if (std::exchange(group.on_disk, false) || gone_.kept(group.id)) write_end(group.id);
  gone_.add(group.id);
  group.info.set_why(why);
  group.info.set_ended_ms(now.wall_us / 1000);
  directory_.move(group, Phase::kRemoved);
  env_.subscriptions.publish_group(group.id, group.info);
  env_.subscriptions.group_ended(group.id);
  news_.removed.emplace_back(group.id, exit.message());
  placement_wanted_ = true;
  for (auto& answer : waiting) answer(was_removed(group.id));
}

void GroupManager::write_end(const GroupId& id) {
  ending_.try_emplace(id);
  gone_.write(id);
  env_.journal.then([this, id](const Status& status, Now now) {
    auto ending = ending_.find(id);
    if (ending == ending_.end()) return;
    if (!status) {
      const int64_t retry_us = env_.options.settings.storage_retry_ms * 1000;
      env_.timers.at(now.steady_us + retry_us, [this, id](Now) { write_end(id); });
      return;
    }
    auto waiting = std::move(ending->second);
    ending_.erase(ending);
    for (auto& reply : waiting) reply(proto::Empty());
  });
}

void GroupManager::persist(Group& group) {
  group.on_disk = true;
  env_.journal.put(table::kGroups, group.id.binary(), group.record().SerializeAsString());
}

std::optional<std::string> GroupManager::record(const std::string& key) const {
  if (!GroupId::is_valid(key)) return std::nullopt;
  const GroupId id = GroupId::from_binary(key);
  const Group* group = directory_.find(id);
  if (!group || !group->on_disk) return gone_.record(id);
  return group->record().SerializeAsString();
}

std::optional<proto::GroupInfo> GroupManager::told(const GroupId& id) const {
  const Group* group = directory_.find(id);
  if (group && group->visible()) return group->info;
  if (group || !gone_.contains(id)) return std::nullopt;
  proto::GroupInfo info;
  info.mutable_spec()->set_group_id(id.binary());
  info.set_state(proto::GROUP_REMOVED);
  // The version is higher than all that anybody was told of the group.
  info.set_version(directory_.version() + 1);
  const Error* refused = gone_.refusal(id);
  info.set_why(refused ? refused->message : "it was removed");
  return info;
}

Result<proto::GetGroupReply> GroupManager::get(const proto::GetGroupRequest& request) const {
  const Group* group = nullptr;
  if (!request.group_id().empty()) {
    if (!GroupId::is_valid(request.group_id()))
      return invalid_group(
          fmt::format("its id has {} bytes, not {}", request.group_id().size(), GroupId::kSize));
    group = directory_.find(GroupId::from_binary(request.group_id()));
  } else if (!request.name().empty()) {
    group = directory_.find_named(request.ray_namespace(), request.name());
  } else {
    return invalid_group("give an id or a name to look for");
  }
  proto::GetGroupReply reply;
  if (!group || !group->visible()) return reply;
  GroupWords words(env_.cluster);
  reply.set_found(true);
  *reply.mutable_group() = words.shown(*group);
  return reply;
}

proto::ListGroupsReply GroupManager::list() const {
  std::map<std::pair<int64_t, GroupId>, const Group*> sorted;
  // Groups that are being stored are included: whoever removes the groups of a dead process must
  // see them.
  for (const auto& [id, group] : directory_.all())
    sorted.emplace(std::pair{group.info.created_ms(), id}, &group);
  proto::ListGroupsReply reply;
  GroupWords words(env_.cluster);
  for (const auto& [order, group] : sorted) *reply.add_groups() = words.shown(*group);
  return reply;
}

void GroupManager::add_pending(google::protobuf::RepeatedPtrField<proto::GroupInfo>* groups) const {
  std::map<std::pair<int64_t, GroupId>, const Group*> sorted;
  for (const auto& [id, group] : directory_.all()) {
    if (waits_for_nodes(group)) sorted.emplace(std::pair{group.info.created_ms(), id}, &group);
  }
  GroupWords words(env_.cluster);
  for (const auto& [order, group] : sorted) {
    proto::GroupInfo info = words.shown(*group);
    info.mutable_spec()->clear_owner();
    groups->Add(std::move(info));
  }
}

bool GroupManager::outlives_job(const Group& group) const {
  const proto::GroupSpec& spec = group.info.spec();
  if (spec.detached()) return true;
  if (!spec.creator_actor_id().empty())
    return env_.actor_lives(ActorId::from_binary(spec.creator_actor_id()));
  return spec.outlives_job();
}

void GroupManager::job_finished(const JobId& job, Now now) {
  for (Group* group : directory_.of_job(job)) {
    if (!outlives_job(*group)) end(*group, fmt::format("its job {} has finished", job.hex()), now);
  }
}

void GroupManager::owners_dead(const std::vector<WorkerId>& workers, Now now) {
  for (const WorkerId& worker : workers) {
    ended_owners_.add(worker);
    for (Group* group : directory_.owned_by(worker))
      end(*group, fmt::format("worker {} that created it is gone", worker.hex()), now);
  }
}

void GroupManager::actor_dead(const ActorId& actor, Now now) {
  for (Group* group : directory_.created_by(actor)) {
    const proto::GroupSpec& spec = group->info.spec();
    // If an actor does not depend on the job, its groups end with it even while the job still runs.
    if (!spec.detached() && (spec.outlives_job() || !env_.jobs.running(group->job)))
      end(*group, fmt::format("actor {} that created it is dead", actor.hex()), now);
  }
}

void GroupManager::recover(proto::GroupInfo info) {
  const proto::GroupSpec& spec = info.spec();
  if (info.state() == proto::GROUP_REMOVED)
    return gone_.recover(GroupId::from_binary(spec.group_id()));
  if (!spec.name().empty()) {
    // A full disk may have kept the record of a removed group whose name was given away since. Then
    // the name belongs to the group that was created later.
    if (Group* holder = directory_.find_named(spec.ray_namespace(), spec.name())) {
      if (holder->info.created_ms() >= info.created_ms())
        return env_.journal.erase(table::kGroups, spec.group_id());
      end(*holder, "a later placement group has its name", {});
    }
  }
  const bool was_created =
      info.state() == proto::GROUP_CREATED || info.state() == proto::GROUP_RESCHEDULING;
  std::vector<NodeId> nodes;
  std::vector<int64_t> epochs;
  for (int i = 0; i < spec.bundles_size(); ++i) {
    const NodeId id = i < info.bundle_nodes_size() && NodeId::is_valid(info.bundle_nodes(i))
                          ? NodeId::from_binary(info.bundle_nodes(i))
                          : NodeId::nil();
    const NodeState* node = id.is_nil() ? nullptr : env_.cluster.find(id);
    nodes.push_back(node && node->alive() ? id : NodeId::nil());
    epochs.push_back(i < info.bundle_epochs_size() ? info.bundle_epochs(i) : 0);
  }
  info.clear_why();
  Group& group = directory_.add(std::move(info));
  group.on_disk = true;
  group.was_created = was_created;
  if (!was_created) {
    directory_.move(group, Phase::kWaiting);
    group.recovered = true;
    return;
  }
  directory_.set_nodes(group, nodes, epochs);
  for (const NodeId& node : group.nodes) {
    std::vector<int> here;
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
      if (nodes[static_cast<size_t>(i)] == node) here.push_back(i);
    }
    env_.cluster.add_bundles(*env_.cluster.find(node), group.sum_of(here));
  }
  const bool complete =
      std::none_of(nodes.begin(), nodes.end(), [](const NodeId& node) { return node.is_nil(); });
  directory_.move(group, complete ? Phase::kCreated : Phase::kWaiting);
  group.recovered = !complete;
}

void GroupManager::nodes_settled(Now now) {
  settled_ = true;
  std::vector<GroupId> ids;
  for (const auto& [id, group] : directory_.all()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const GroupId& id : ids) {
    Group& group = *directory_.find(id);
    if (group.removed() || group.phase == Phase::kCommitting) continue;
    if (!env_.jobs.running(group.job) && !outlives_job(group)) {
      end(group, fmt::format("its job {} has finished", group.job.hex()), now);
    } else if (group.phase == Phase::kWaiting && group.recovered) {
      queue(group, now);
    }
  }
}

void GroupManager::end_event(Now now) {
  if (placement_wanted_ || !fresh_.empty()) place(now);
  directory_.forget_removed(static_cast<size_t>(env_.options.settings.removed_groups_kept));
}

void GroupManager::check_invariants() const {
  directory_.check_invariants();
  std::map<NodeId, ResourceSet> sums;
  for (const auto& [id, group] : directory_.all()) {
    if (group.attempt) {
      for (const auto& [node, part] : group.attempt->parts) sums[node].add(part.amount);
    }
    for (int i = 0; i < static_cast<int>(group.bundles.size()); ++i) {
      const NodeId node = group.node_of(i);
      if (!node.is_nil()) sums[node].add(group.bundles.resources(static_cast<size_t>(i)));
    }
    if (!group.removed() && settled_ && !env_.jobs.running(group.job) &&
        !group.info.spec().detached())
      RT_CHECK(group.info.spec().outlives_job() || !group.info.spec().creator_actor_id().empty());
  }
  for (const auto& [id, node] : env_.cluster.nodes()) {
    RT_CHECK(node.bundles_hold == sums[id]);
    for (const auto& [who, reservation] : node.reserved.claims) {
      const auto* claim = std::get_if<BundleClaim>(&who);
      if (!claim) continue;
      const Group* group = directory_.find(claim->group);
      RT_CHECK(group && group->nodes.contains(id));
    }
  }
}

}  // namespace rt::head
