#include "daemons/node_manager/core/bundle_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/base/utf8.h"

namespace rt::node {

// ---- prepare

bool BundleDesk::prepare(const proto::PrepareBundlesRequest& request, bool leaving, Now now) {
  const GroupId group = GroupId::from_binary(request.group_id());
  const int64_t epoch = request.epoch();
  if (std::string fault = fault_of(request); !fault.empty() || holds_all(request)) {
    answer(group, epoch, fault);
    return false;
  }
  const BundleAttempt* waiting = node_.line.find(group);
  if (waiting && waiting->epoch == epoch) return false;  // answered together with the first request
  if (std::string why = overtaken(request); !why.empty()) {
    refuse(group, epoch, why);
    return false;
  }
  replace_earlier(request, now);
  if (leaving) {
    refuse(group, epoch, fmt::format("node {} is leaving the cluster", node_.me.ip));
    return false;
  }
  BundleAttempt attempt = attempt_of(request, now);
  const ResourceSet& total = node_.rooms.node().resources().total();
  if (!total.contains(attempt.sum)) {
    refuse(group, epoch,
           fmt::format("node {} has {}, and the bundles need {}", node_.me.ip,
                       printable(total.to_string()), printable(attempt.sum.to_string())));
    return false;
  }
  node_.line.add(std::move(attempt));
  return true;
}

std::string BundleDesk::fault_of(const proto::PrepareBundlesRequest& request) const {
  if (GroupId::from_binary(request.group_id()).is_nil() || !JobId::is_valid(request.job_id()))
    return "the request to reserve bundles has no valid group and job id";
  if (request.bundles().empty()) return "the request to reserve bundles names none";
  std::set<int> indexes;
  for (const auto& bundle : request.bundles()) {
    if (bundle.index() < 0 || !indexes.insert(bundle.index()).second)
      return fmt::format("the request to reserve bundles names bundle {}, or names it twice",
                         bundle.index());
  }
  return "";
}

bool BundleDesk::holds_all(const proto::PrepareBundlesRequest& request) const {
  const GroupId group = GroupId::from_binary(request.group_id());
  return std::all_of(request.bundles().begin(), request.bundles().end(), [&](const auto& wanted) {
    const Bundle* held = node_.rooms.bundles().find({group, wanted.index()});
    return held && held->epoch == request.epoch() && !held->returning;
  });
}

std::string BundleDesk::overtaken(const proto::PrepareBundlesRequest& request) const {
  const GroupId group = GroupId::from_binary(request.group_id());
  if (const BundleLine::Ended* ended = node_.line.ended(group);
      ended && request.epoch() <= ended->epoch)
    return ended->epoch == request.epoch() ? ended->why
                                           : "a later attempt of the group has ended here already";
  const BundleAttempt* waiting = node_.line.find(group);
  if (waiting && waiting->epoch > request.epoch())
    return "a later attempt of the group waits here already";
  for (const auto& wanted : request.bundles()) {
    const Bundle* held = node_.rooms.bundles().find({group, wanted.index()});
    if (held && held->epoch >= request.epoch())
      return fmt::format("bundle {} is here from a later attempt, or without the others",
                         wanted.index());
  }
  return "";
}

void BundleDesk::replace_earlier(const proto::PrepareBundlesRequest& request, Now now) {
  const GroupId group = GroupId::from_binary(request.group_id());
  const std::string why = "a later attempt to place its group takes its place";
  if (const BundleAttempt* waiting = node_.line.find(group)) refuse(group, waiting->epoch, why);
  proto::ExitInfo info;
  info.set_message(why);
  for (const auto& wanted : request.bundles()) {
    const RoomKey key{group, wanted.index()};
    const Bundle* held = node_.rooms.bundles().find(key);
    if (held && !held->returning) begin_return(key, info, now);
  }
}

BundleAttempt BundleDesk::attempt_of(const proto::PrepareBundlesRequest& request, Now now) const {
  BundleAttempt attempt;
  attempt.group = GroupId::from_binary(request.group_id());
  attempt.epoch = request.epoch();
  attempt.since_us = now.steady_us;
  std::vector<std::pair<int, ResourceSet>> bundles;
  for (const auto& bundle : request.bundles())
    bundles.emplace_back(bundle.index(), ResourceSet::from_proto(bundle.resources()));
  // The bundles that need most of a device come first, so that the parts fit on as few as possible.
  std::stable_sort(bundles.begin(), bundles.end(), [](const auto& a, const auto& b) {
    return a.second.units("GPU") > b.second.units("GPU");
  });
  for (auto& [index, resources] : bundles) {
    attempt.indexes.push_back(index);
    attempt.sum.add(resources);
    attempt.parts.push_back(std::move(resources));
  }
  return attempt;
}

void BundleDesk::answer(const GroupId& group, int64_t epoch, const std::string& why_not) {
  proto::PrepareBundlesReply reply;
  reply.set_ok(why_not.empty());
  reply.set_why_not(why_not);
  node_.sink.bundles_prepared(group, epoch, reply);
}

void BundleDesk::refuse(const GroupId& group, int64_t epoch, const std::string& why) {
  const BundleAttempt* waiting = node_.line.find(group);
  if (waiting && waiting->epoch == epoch) node_.line.remove(group);
  node_.line.end(group, epoch, why);
  answer(group, epoch, why);
}

// ---- the line

void BundleDesk::serve_line(Now now) {
  BundleLine& line = node_.line;
  line.clear_aside();
  if (line.empty()) return;
  const int64_t most_us =
      (node_.settings.lease_revoke_after_ms + node_.settings.actor_placement_wait_ms) * 1000;
  std::optional<Outlook> outlook;  // It holds for the room as it is.
  const std::deque<BundleAttempt> waiting = line.waiting();
  for (const BundleAttempt& attempt : waiting) {
    if (fits(attempt)) {
      hold(attempt);
      outlook.reset();
      line.remove(attempt.group);
      answer(attempt.group, attempt.epoch, "");
      continue;
    }
    if (!outlook) outlook = look_ahead();
    const int64_t waited_us = now.steady_us - attempt.since_us;
    std::string why = hopeless(attempt, *outlook);
    if (why.empty() && waited_us > most_us) {
      line.pause(waited_us, now);
      why = fmt::format("node {} did not have {} free in time", node_.me.ip,
                        printable(attempt.sum.to_string()));
    }
    if (!why.empty()) {
      refuse(attempt.group, attempt.epoch, why);
      continue;
    }
    ResourceSet left = outlook->soon.resources();
    left.subtract_allowing_debt(line.aside());
    if (left.contains(attempt.sum) && outlook->soon.covers_all(attempt.sum, attempt.parts))
      line.set_aside(attempt.sum, now);
  }
}

bool BundleDesk::fits(const BundleAttempt& attempt) const {
  for (int index : attempt.indexes) {
    // An earlier one with the same index ends first.
    if (node_.rooms.bundles().find({attempt.group, index})) return false;
  }
  const Prospect now(node_.rooms.node());
  if (!now.covers_all(attempt.sum, attempt.parts)) return false;
  ResourceSet free = now.resources();
  free.subtract_allowing_debt(node_.line.aside());
  return free.contains(attempt.sum);
}

BundleDesk::Outlook BundleDesk::look_ahead() const {
  Prospect soon(node_.rooms.node());
  for (const auto& [key, bundle] : node_.rooms.bundles().all()) {
    if (bundle.returning) soon.add(bundle.room.resources().total(), bundle.devices);
  }
  for (const auto& [id, actor] : node_.actors.all()) {
    const Worker* worker = actor.state == HostedActor::State::kStarting
                               ? node_.workers.pool().find(actor.worker)
                               : nullptr;
    if (!worker || worker->state != WorkerState::kActor || worker->blocked ||
        !worker->room.is_node())
      continue;
    ResourceSet placing = actor.placement;
    placing.subtract(actor.lifetime);
    soon.add(placing, {});
  }
  Prospect with_blocked = soon;
  for (const auto& [id, worker] : node_.workers.pool().all()) {
    if (worker->state != WorkerState::kLeased || !worker->room.is_node()) continue;
    const ResourceSet gives = releasable_resources(*worker);
    if (!worker->blocked) soon.add(gives, worker->gpus);
    with_blocked.add(gives, worker->gpus);
  }
  return {std::move(soon), std::move(with_blocked)};
}

std::string BundleDesk::hopeless(const BundleAttempt& attempt, const Outlook& outlook) const {
  if (outlook.with_blocked.covers_all(attempt.sum, attempt.parts)) return "";
  ResourceSet lacks;
  for (const auto& [name, units] : attempt.sum.all())
    lacks.set_units(name,
                    units - std::max<int64_t>(0, outlook.with_blocked.resources().units(name)));
  if (lacks.empty())
    return fmt::format("node {} has not enough free of single GPU devices", node_.me.ip);
  return fmt::format("node {} lacks {}: actors, entrypoints and other bundles hold it", node_.me.ip,
                     printable(lacks.to_string()));
}

void BundleDesk::hold(const BundleAttempt& attempt) {
  for (size_t i = 0; i < attempt.parts.size(); ++i) {
    Room& node = node_.rooms.change(RoomKey());
    GpuShare devices = node.take(attempt.parts[i]);
    GpuPool gpus = node.gpus().part(devices);
    node_.rooms.bundles().hold(
        {attempt.group, attempt.indexes[i]},
        Bundle{attempt.epoch, Room(attempt.parts[i], std::move(gpus)), std::move(devices)});
  }
}

void BundleDesk::close(const std::string& why) {
  const std::deque<BundleAttempt> waiting = node_.line.waiting();
  for (const BundleAttempt& attempt : waiting) refuse(attempt.group, attempt.epoch, why);
  node_.line.clear_aside();
}

void BundleDesk::drop_waiting() {
  const std::deque<BundleAttempt> waiting = node_.line.waiting();
  for (const BundleAttempt& attempt : waiting) {
    // It has not ended: the same head asks for it again.
    node_.line.remove(attempt.group);
    answer(attempt.group, attempt.epoch, "the connection to the head broke");
  }
}

// ---- return

bool BundleDesk::give_back(const proto::ReturnBundlesRequest& request, Now now) {
  const GroupId group = GroupId::from_binary(request.group_id());
  if (group.is_nil()) return false;
  const std::string why = "the head has given the bundles back";
  const BundleAttempt* waiting = node_.line.find(group);
  bool changed = waiting && waiting->epoch <= request.epoch();
  if (changed) refuse(group, waiting->epoch, why);
  // A request of such an attempt that comes later must not reserve anything.
  node_.line.end(group, request.epoch(), why);
  for (const RoomKey& key : node_.rooms.bundles().of_group(group)) {
    const Bundle& bundle = *node_.rooms.bundles().find(key);
    const bool named = request.indexes().empty() ||
                       std::find(request.indexes().begin(), request.indexes().end(), key.index) !=
                           request.indexes().end();
    if (!named || bundle.returning || bundle.epoch > request.epoch()) continue;
    begin_return(key, request.why(), now);
    changed = true;
  }
  return changed;
}

void BundleDesk::begin_return(const RoomKey& key, const proto::ExitInfo& why, Now now) {
  node_.rooms.bundles().set_returning(key);
  proto::ExitInfo info;
  info.set_kind(why.kind());
  info.set_message(why.message().empty() ? bundle_name(key) + ", in which it ran, was given back"
                                         : why.message());
  info.set_node_id(node_.me.id.binary());
  info.set_ip(node_.me.ip);
  // Without its group an actor has no other place to go.
  node_.actors.fail_waiting([&](const HostedActor& actor) { return actor.room == key; }, info,
                            info.kind() != proto::ExitInfo::GROUP_REMOVED);
  std::vector<WorkerId> inside;
  for (const auto& [id, worker] : node_.workers.pool().all()) {
    if (worker->room == key && !worker->forced) inside.push_back(id);
  }
  for (const WorkerId& id : inside)
    node_.workers.dismiss(*node_.workers.pool().find(id), info.kind(), info.message(), now);
  vacated(key);
}

void BundleDesk::vacated(const RoomKey& room) {
  const Bundle* bundle = room.is_node() ? nullptr : node_.rooms.bundles().find(room);
  if (!bundle || !bundle->returning) return;
  for (const auto& [id, worker] : node_.workers.pool().all()) {
    if (worker->room == room) return;
  }
  const Bundle ended = node_.rooms.bundles().remove(room);
  node_.rooms.change(RoomKey()).give_back(ended.room.resources().total(), ended.devices);
}

}  // namespace rt::node
