// Questions about actors, which change nothing. An actor is unknown until its registration is on
// disk.
#pragma once

#include <optional>
#include <string>

#include "common/base/status.h"
#include "daemons/head/core/actors.h"

namespace rt::head {

// Returns the actor's current state, or null while it is unknown.
const proto::ActorInfo* visible_actor(const ActorDirectory& directory, const ActorId& id);
// Finds the actor by id or by name; fails with kInvalid if the request has neither.
Result<proto::GetActorReply> get_actor(const ActorDirectory& directory,
                                       const proto::GetActorRequest& request);
proto::ListActorsReply list_actors(const ActorDirectory& directory,
                                   const proto::ListActorsRequest& request);
// Returns the record to store for the actor with this binary id, or nothing when there is none.
std::optional<std::string> actor_record(const ActorDirectory& directory, const std::string& key);

}  // namespace rt::head
