#include "worker/service/actor_creations.h"

#include <algorithm>

#include "common/rpc/client.h"
#include "worker/core/actor_calls.h"
#include "worker/service/head_connection.h"
#include "worker/service/objects.h"

namespace rt::worker {

ActorCreations::ActorCreations(HeadConnection& head, Objects& objects, ActorCalls& calls,
                               const std::atomic<bool>& stopping)
    : head_(head), objects_(objects), calls_(calls), stopping_(stopping) {}

ActorCreations::~ActorCreations() = default;

void ActorCreations::start(const ActorId& id, proto::RegisterActorRequest request, Task arguments,
                           Registered registered) {
  Creation& creation = creations_[id];
  creation.args = std::move(arguments.args);
  creation.inlined = std::move(arguments.inlined);
  creation.held = std::move(arguments.held);
  std::vector<Ref> unready;
  for (const Task::Arg& arg : creation.args) {
    if (!arg.ref) continue;
    auto& entry = entry_of(arg.ref);
    if (entry.ready) continue;
    ++creation.unready;
    unready.push_back(arg.ref);
    entry.mutable_details().waiters.push_back([this, id] {
      assert_locked();
      auto waiting = creations_.find(id);
      if (waiting != creations_.end() && --waiting->second.unready == 0) deliver(id);
    });
  }
  // An owner that cannot be reached makes its object ready at once.
  for (const Ref& ref : unready) objects_.resolve(entry_of(ref));
  if (creation.unready == 0) {
    fill(creation, request.mutable_spec());
  } else {
    request.set_arguments(proto::RegisterActorRequest::FOLLOW);
  }
  send(std::make_shared<proto::RegisterActorRequest>(std::move(request)),
       [this, id, registered = std::move(registered)](Result<proto::RegisterActorReply> reply) {
         assert_locked();
         auto made = creations_.find(id);
         if (made != creations_.end()) made->second.registered = true;
         if (reply && !reply->existed() && made != creations_.end() &&
             made->second.state == Creation::State::kRegistering) {
           made->second.state = Creation::State::kAwaited;
           deliver(id);
         }
         registered(std::move(reply));
       });
}

void ActorCreations::send(std::shared_ptr<proto::RegisterActorRequest> request, Registered done) {
  head_.with(
      [this, request, done = std::move(done)](Result<std::shared_ptr<rpc::Connection>> connection) {
        assert_locked();
        if (!connection) return done(connection.error());
        rpc::call(**connection, &proto::HeadService::Stub::RegisterActor, *request, 60'000'000,
                  [this, request, done](Result<proto::RegisterActorReply> reply) {
                    assert_locked();
                    // The head went away with the request. It accepts the same request again,
                    // whether or not the first one reached its disk.
                    bool again = !reply && may_recover(reply.error().code) && !stopping_;
                    again ? send(request, done) : done(std::move(reply));
                  });
      });
}

void ActorCreations::deliver(const ActorId& id) {
  Creation& creation = creations_.at(id);
  if (creation.state != Creation::State::kAwaited || creation.unready > 0) return;
  auto request = std::make_shared<proto::RegisterActorRequest>();
  request->set_arguments(proto::RegisterActorRequest::OF_REGISTERED);
  request->mutable_spec()->set_actor_id(id.binary());
  fill(creation, request->mutable_spec());
  send(request, [this, id](Result<proto::RegisterActorReply> reply) {
    assert_locked();
    if (!reply) failed(id, reply.error());
  });
}

void ActorCreations::fill(Creation& creation, proto::ActorSpec* spec) {
  for (const Task::Arg& arg : creation.args) {
    proto::TaskArg* out = spec->add_args();
    if (!arg.ref) {
      out->set_inlined(creation.inlined.substr(arg.offset, arg.size));
      continue;
    }
    const auto& entry = entry_of(arg.ref);
    if (entry.state == ObjectState::kInMemory) {
      // The actor's own error will tell of this one.
      entry.unseen_error.store(false, std::memory_order_relaxed);
      out->set_inlined(std::string(as_view(entry.blob.bytes())));
    } else {
      out->set_object_id(entry.id.binary());
      *out->mutable_owner() = objects_.owner_of(entry);
    }
  }
  creation.inlined = {};
  creation.state = Creation::State::kDelivered;
}

void ActorCreations::failed(const ActorId& id, const Error& why) {
  calls_.link(id);
  calls_.give_up(id, why.message);
  forget(id);
}

bool ActorCreations::any_undelivered() const {
  return std::any_of(creations_.begin(), creations_.end(), [](const auto& made) {
    return made.second.state != Creation::State::kDelivered;
  });
}

void ActorCreations::forget(const ActorId& id) { creations_.erase(id); }

}  // namespace rt::worker
