#include "daemons/node_manager/core/hosted_actors.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace rt::node {
namespace {

HostedActor hosted(const proto::CreateActorRequest& request, bool outlives_job) {
  HostedActor actor;
  actor.request = request;
  actor.id = ActorId::from_binary(request.spec().actor_id());
  actor.job = JobId::from_binary(request.spec().job_id());
  actor.outlives_job = outlives_job;
  const proto::TaskTemplate& creation = request.spec().creation();
  actor.lifetime = ResourceSet::from_proto(creation.resources());
  actor.placement = ResourceSet::from_proto(request.spec().placement());
  // Placement must cover what the actor holds afterwards.
  for (const auto& [name, units] : actor.lifetime.all()) {
    if (actor.placement.units(name) < units) actor.placement.set_units(name, units);
  }
  proto::Language language = creation.function().language();
  actor.kind = {
      language,
      language == proto::LANGUAGE_PYTHON ? request.spec().job_config().python_executable() : "",
      creation.runtime_env(), actor.placement.units("GPU") > 0};
  return actor;
}

// Sets the room of an actor that has a group: the bundle that the head chose, or if it left that to
// the node, one that has room, else one that is large enough. Returns false if there is none.
bool choose_room(HostedActor& actor, const Rooms& rooms) {
  const GroupId group = GroupId::from_binary(actor.request.spec().creation().group_id());
  const std::vector<RoomKey> keys = rooms.bundles().candidates(
      {group, std::max(actor.request.bundle_index(), -1)}, actor.placement);
  if (keys.empty()) return false;
  auto now = std::find_if(keys.begin(), keys.end(),
                          [&](const RoomKey& key) { return rooms.at(key).fits(actor.placement); });
  actor.room = now == keys.end() ? keys.front() : *now;
  return true;
}

}  // namespace

HostedActors::HostedActors(const Parts& node) : node_(node) {}

HostedActors::~HostedActors() = default;

const HostedActor* HostedActors::find(const ActorId& id) const {
  auto it = actors_.find(id);
  return it == actors_.end() ? nullptr : &it->second;
}

// ---- start

bool HostedActors::add(const proto::CreateActorRequest& request, bool outlives_job, bool leaving,
                       Now now) {
  const ActorId id = ActorId::from_binary(request.spec().actor_id());
  HostedActor& actor = actors_[id] = hosted(request, outlives_job);
  actor.since_us = now.steady_us;
  waiting_.push_back(id);
  const std::string why = unplaceable(actor, leaving);
  if (why.empty()) return true;
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::UNSCHEDULABLE);
  info.set_message(why);
  fail(actor, info, true);
  return false;
}

std::string HostedActors::unplaceable(HostedActor& actor, bool leaving) const {
  if (leaving) return fmt::format("node {} is leaving the cluster", node_.me.ip);
  const std::string& group = actor.request.spec().creation().group_id();
  if (!group.empty()) {
    if (choose_room(actor, node_.rooms)) return "";
    return fmt::format("node {} has no room for it: it needs {}", node_.me.ip,
                       node_.rooms.bundles().obstacle({GroupId::from_binary(group),
                                                       std::max(actor.request.bundle_index(), -1)},
                                                      actor.placement));
  }
  return node_.rooms.node().feasible(actor.placement)
             ? ""
             : fmt::format("node {} has no {}", node_.me.ip, actor.placement.to_string());
}

// Whether there is room that is not kept for bundles.
bool HostedActors::has_room_for(const HostedActor& actor) const {
  const Room& room = node_.rooms.at(actor.room);
  if (!room.fits(actor.placement)) return false;
  const ResourceSet& aside = node_.bundle_line.aside();
  if (!actor.room.is_node() || aside.empty()) return true;
  ResourceSet free = room.resources().available();
  free.subtract_allowing_debt(aside);
  return free.contains(actor.placement);
}

void HostedActors::place(Now now) {
  using State = HostedActor::State;
  for (size_t i = 0; i < waiting_.size();) {
    HostedActor& actor = actors_.at(waiting_[i]);
    if (actor.state == State::kWaitingResources && has_room_for(actor)) take_resources(actor, now);
    if (actor.state == State::kWaitingResources &&
        now.steady_us - actor.since_us > node_.settings.actor_placement_wait_ms * 1000) {
      proto::ExitInfo info;
      info.set_kind(proto::ExitInfo::UNSCHEDULABLE);
      info.set_message(
          fmt::format("{} did not have {} free in time",
                      actor.room.is_node() ? "node " + node_.me.ip : bundle_name(actor.room),
                      actor.placement.to_string()));
      fail(actor, info, true);
      continue;
    }
    Worker* worker = actor.state == State::kWaitingWorker ? node_.pool.unused(actor.kind) : nullptr;
    if (!worker) {
      if (actor.state == State::kWaitingWorker) node_.starts.need_for_actor(actor.kind);
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    take_worker(actor, *worker, now);
  }
}

void HostedActors::take_resources(HostedActor& actor, Now now) {
  Room& room = node_.rooms.change(actor.room);
  actor.gpus = room.take(actor.placement);
  for (std::string& name : room.gpus().names(actor.gpus))
    actor.request.add_gpu_ids(std::move(name));
  actor.state = HostedActor::State::kWaitingWorker;
  actor.since_us = now.steady_us;
}

void HostedActors::take_worker(HostedActor& actor, Worker& worker, Now now) {
  node_.pool.set_state(worker, WorkerState::kActor, now);
  worker.job = actor.job;
  worker.outlives_job = actor.outlives_job;
  worker.actor = actor.id;
  worker.room = actor.room;
  worker.held = actor.placement;
  worker.gpus = std::exchange(actor.gpus, {});
  actor.worker = worker.id;
  actor.state = HostedActor::State::kStarting;
  node_.sink.start_actor(worker.id, actor.request);
}

void HostedActors::fail_waiting(const std::function<bool(const HostedActor&)>& which,
                                const proto::ExitInfo& why, bool no_resources) {
  const std::deque<ActorId> waiting = waiting_;
  for (const ActorId& id : waiting) {
    if (HostedActor& actor = actors_.at(id); which(actor)) fail(actor, why, no_resources);
  }
}

void HostedActors::fail(HostedActor& actor, const proto::ExitInfo& why, bool no_resources) {
  proto::CreateActorReply reply;
  *reply.mutable_failure() = why;
  reply.set_no_resources(no_resources);
  if (actor.state == HostedActor::State::kWaitingWorker)
    node_.rooms.change(actor.room).give_back(actor.placement, actor.gpus);
  const ActorId id = actor.id;
  const int64_t epoch = actor.request.epoch();
  std::erase(waiting_, id);
  actors_.erase(id);
  if (!no_resources) ends_.record(id, epoch, why);
  node_.sink.actor_created(id, epoch, reply);
}

void HostedActors::set_alive(const ActorId& id, const proto::CreateActorReply& answer) {
  HostedActor& actor = actors_.at(id);
  actor.state = HostedActor::State::kAlive;
  node_.sink.actor_created(id, actor.request.epoch(), answer);
}

void HostedActors::set_failed(const ActorId& id, const proto::CreateActorReply& answer) {
  auto actor = actors_.extract(id);
  const int64_t epoch = actor.mapped().request.epoch();
  ends_.record(id, epoch, answer.failure());
  node_.sink.actor_created(id, epoch, answer);
}

// ---- end

void HostedActors::begin_end(Worker& worker) {
  ends_.begin(worker.id, worker.actor);
  worker.actor = ActorId::nil();
}

ActorId HostedActors::in_process(const Worker& worker) const {
  return ends_.of(worker.id).value_or(worker.actor);
}

void HostedActors::ended(const WorkerId& worker, const proto::ExitInfo& info) {
  const std::optional<ActorId> id = ends_.of(worker);
  if (!id) return;
  ends_.forget(worker);
  auto it = actors_.find(*id);
  if (it == actors_.end() || it->second.worker != worker)
    return;  // a later incarnation has taken its place
  const int64_t epoch = it->second.request.epoch();
  const bool alive = it->second.state == HostedActor::State::kAlive;
  actors_.erase(it);
  ends_.record(*id, epoch, info);
  if (alive) {
    proto::ActorDied died;
    died.set_actor_id(id->binary());
    died.set_epoch(epoch);
    *died.mutable_death() = info;
    node_.sink.actor_died(died);
  } else {
    proto::CreateActorReply reply;
    *reply.mutable_failure() = info;
    node_.sink.actor_created(*id, epoch, reply);
  }
}

void HostedActors::check_invariants() const {
  const std::set<ActorId> waiting(waiting_.begin(), waiting_.end());
  RT_CHECK(waiting.size() == waiting_.size());
  for (const auto& [id, actor] : actors_) {
    const bool waits = actor.state == HostedActor::State::kWaitingResources ||
                       actor.state == HostedActor::State::kWaitingWorker;
    RT_CHECK(waits == waiting.contains(id));
    if (waits) {
      if (!actor.room.is_node()) RT_CHECK(!node_.rooms.bundles().all().at(actor.room).returning);
      continue;
    }
    const Worker* worker = node_.pool.find(actor.worker);
    const bool dying = worker && worker->state == WorkerState::kDying && ends_.of(worker->id);
    RT_CHECK(worker && (dying || (worker->state == WorkerState::kActor && worker->actor == id)));
  }
}

void HostedActors::forget(const ActorId& id) { actors_.erase(id); }

}  // namespace rt::node
