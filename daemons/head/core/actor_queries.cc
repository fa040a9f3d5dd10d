#include "daemons/head/core/actor_queries.h"

#include <fmt/core.h>

#include <map>

namespace rt::head {

const proto::ActorInfo* visible_actor(const ActorDirectory& directory, const ActorId& id) {
  const Actor* actor = directory.find(id);
  return actor && actor->phase != Actor::Phase::kCommitting ? &actor->info : nullptr;
}

Result<proto::GetActorReply> get_actor(const ActorDirectory& directory,
                                       const proto::GetActorRequest& request) {
  proto::GetActorReply reply;
  const Actor* actor = nullptr;
  if (!request.actor_id().empty()) {
    if (!ActorId::is_valid(request.actor_id()))
      return make_error(Code::kInvalid, fmt::format("an actor id has {} bytes, not {}",
                                                    ActorId::kSize, request.actor_id().size()));
    actor = directory.find(ActorId::from_binary(request.actor_id()));
  } else if (!request.name().empty()) {
    actor = directory.find_named(request.ray_namespace(), request.name());
  } else {
    return make_error(Code::kInvalid, "get actor: give an id or a name");
  }
  if (!actor || actor->phase == Actor::Phase::kCommitting) return reply;
  reply.set_found(true);
  *reply.mutable_actor() = actor->info;
  reply.mutable_actor()->mutable_spec()->clear_args();
  return reply;
}

proto::ListActorsReply list_actors(const ActorDirectory& directory,
                                   const proto::ListActorsRequest& request) {
  std::map<ActorId, const Actor*> sorted;
  for (const auto& [id, actor] : directory.all()) {
    if (actor.phase == Actor::Phase::kCommitting) continue;
    if (request.alive_only() && actor.dead()) continue;
    if (!request.all_namespaces() && !request.ray_namespace().empty() &&
        actor.info.spec().ray_namespace() != request.ray_namespace())
      continue;
    if (request.named_only() && actor.info.spec().name().empty()) continue;
    sorted.emplace(id, &actor);
  }
  proto::ListActorsReply reply;
  for (const auto& [id, actor] : sorted)
    *reply.add_actors() = ActorDirectory::summary_of(actor->info);
  return reply;
}

std::optional<std::string> actor_record(const ActorDirectory& directory, const std::string& key) {
  const Actor* actor = ActorId::is_valid(key) ? directory.find(ActorId::from_binary(key)) : nullptr;
  if (!actor) return std::nullopt;
  return actor->info.SerializeAsString();
}

}  // namespace rt::head
