#include "tests/sim/owner_actors.h"

#include <fmt/core.h>

#include "tests/sim/sim_head.h"
#include "tests/sim/sim_worker.h"

namespace rt::sim {

void OwnerActors::create(proto::ActorSpec spec, const ActorPlan& plan) {
  const ActorId id = ActorId::from_binary(spec.actor_id());
  world_.ledger.actor_created(id, plan);
  own_.insert(id);
  registering_.insert(id);
  spec.set_name(plan.name);
  spec.set_detached(plan.detached);
  spec.set_class_name("Actor");
  spec.set_max_restarts(plan.max_restarts);
  plan.held.to_proto(spec.mutable_creation()->mutable_resources());
  spec.mutable_creation()->set_strategy(plan.strategy);
  if (!plan.group.is_nil()) {
    spec.mutable_creation()->set_group_id(plan.group.binary());
    spec.mutable_creation()->set_bundle_index(plan.bundle);
    spec.mutable_creation()->set_captures_children(plan.captures);
  }
  plan.placement.to_proto(spec.mutable_placement());
  proto::RegisterActorRequest request;
  *request.mutable_spec() = std::move(spec);
  send_registration(request);
}

// Registering an actor again is harmless: the head answers with the registration it has.
void OwnerActors::send_registration(const proto::RegisterActorRequest& request) {
  head_.with([this, request](Result<ChannelPtr> channel) {
    const ActorId id = ActorId::from_binary(request.spec().actor_id());
    if (!channel) return registration_failed(id, channel.error());
    (*channel)->call<proto::RegisterActorReply>(
        "register actor",
        [request](Channel& at, Channel::Answer<proto::RegisterActorReply> answer) {
          head_at(at).register_actor(request, std::move(answer));
        },
        [this, request, id](Result<proto::RegisterActorReply> reply) {
          if (reply) {
            registering_.erase(id);
            return environment_.drive([&] { calls_.link(id); });
          }
          if (may_recover(reply.error().code))
            return environment_.after(50'000, "register again",
                                      [this, request] { send_registration(request); });
          registration_failed(id, reply.error());
        },
        60'000'000);
  });
}

void OwnerActors::registration_failed(const ActorId& id, const Error& why) {
  registering_.erase(id);
  world_.ledger.actor_kill_requested(id);  // refused: the actor never starts
  dead_[id].set_message(why.message);
  environment_.drive([&] {
    calls_.link(id);
    calls_.give_up(id, why.message);
  });
}

void OwnerActors::kill(const ActorId& actor, bool no_restart) {
  if (no_restart) world_.ledger.actor_kill_requested(actor);
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(no_restart);
  request.set_why(proto::ExitInfo::KILLED_BY_USER);
  head_.with([request](Result<ChannelPtr> channel) {
    if (channel)
      (*channel)->call<proto::Empty>(
          "kill actor",
          [request](Channel& at, Channel::Answer<proto::Empty> answer) {
            head_at(at).kill_actor(request, std::move(answer));
          },
          [](Result<proto::Empty>) {});
  });
}

void OwnerActors::update(const proto::ActorInfo& info) {
  const ActorId id = ActorId::from_binary(info.spec().actor_id());
  if (info.state() == proto::ACTOR_DEAD) {
    dead_[id] = info.death();
    head_.forget_actor(id);
  }
  environment_.drive([&] { calls_.actor_update(id, info, world_.clock.now()); });
}

void OwnerActors::owner_ended() {
  for (const ActorId& id : own_) {
    if (!world_.ledger.actor(id).plan.detached) world_.ledger.actor_kill_requested(id);
  }
}

std::string OwnerActors::unfinished() const {
  std::map<ActorId, std::string> actors;
  calls_.for_each_call([&](const worker::Task&, const worker::ActorLink& actor, bool) {
    actors[actor.id] =
        fmt::format("; actor {} in epoch {}: link in state {}, the head said {}", actor.id.hex(),
                    actor.info.epoch(), static_cast<int>(actor.state),
                    actor.info.has_spec() ? proto::ActorState_Name(actor.info.state()) : "nothing");
  });
  std::string out;
  for (const auto& [id, text] : actors) out += text;
  return out;
}

// ---- decisions of the calls

void OwnerActors::attempt_failed(const worker::Task& task, const proto::ErrorValue&) {
  world_.ledger.retry_used(task.id);
}

void OwnerActors::subscribe_actor(const ActorId& id) {
  if (!head_.keep_actor(id)) return;
  head_.with([this, id](Result<ChannelPtr> channel) {
    if (!channel)
      return environment_.drive(
          [&] { calls_.give_up(id, "the head cannot be reached: " + channel.error().message); });
    proto::SubscribeRequest request;
    request.add_actor_ids(id.binary());
    OwnerHead::send_subscription(**channel, request, [this, id] {
      const worker::ActorLink* actor = calls_.find(id);
      if (actor && !actor->info.has_spec())
        environment_.drive([&] { calls_.actor_unknown(id, world_.clock.now()); });
    });
  });
}

bool OwnerActors::forget_actor(const ActorId& id) {
  head_.forget_actor(id);
  return true;
}

worker::ActorSink::Maker OwnerActors::maker_of(const ActorId& id) const {
  return registering_.contains(id) ? Maker::kThisProcess : Maker::kAnother;
}

void OwnerActors::connect_actor(const worker::ActorLink& actor) {
  environment_.with_peer(actor.info.address(),
                         [this, id = actor.id, epoch = actor.info.epoch(),
                          worker = WorkerId::from_binary(actor.info.address().worker_id())](
                             Result<ChannelPtr> channel) {
                           worker::ActorLink* actor = calls_.find(id);
                           if (!actor || actor->info.epoch() != epoch) return;
                           environment_.drive([&] {
                             if (!channel) return calls_.connection_lost(id, world_.clock.now());
                             environment_.use_for(worker, id);
                             calls_.connected(id, **channel);
                           });
                         });
}

void OwnerActors::push_call(const worker::ActorLink& actor, const worker::Task& task) {
  world_.ledger.sent(task.id);
  static_cast<Channel*>(actor.channel)
      ->send("call", [message = TaskMessage{task.seq, task.id}](Channel& at) {
        worker_at(at).run(at, message);
      });
}

void OwnerActors::query_actor(const ActorId& id) {
  head_.with([this, id](Result<ChannelPtr> channel) {
    if (!channel) return environment_.drive([&] { calls_.query_failed(id, world_.clock.now()); });
    proto::GetActorRequest request;
    request.set_actor_id(id.binary());
    (*channel)->call<proto::GetActorReply>(
        "get actor",
        [request](Channel& at, Channel::Answer<proto::GetActorReply> answer) {
          head_at(at).get_actor(request, std::move(answer));
        },
        [this, id](Result<proto::GetActorReply> reply) {
          if (!reply)
            return environment_.drive([&] { calls_.query_failed(id, world_.clock.now()); });
          if (reply->found() && reply->actor().state() == proto::ACTOR_DEAD)
            dead_[id] = reply->actor().death();
          environment_.drive([&] {
            calls_.query_answered(id, reply->found() ? &reply->actor() : nullptr,
                                  world_.clock.now());
          });
        },
        10'000'000);
  });
}

}  // namespace rt::sim
