#include "worker/service/actor_client.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <utility>

#include "common/rpc/client.h"
#include "worker/core/runtime_env.h"
#include "worker/core/spec_size.h"
#include "worker/service/current_task.h"
#include "worker/service/groups.h"
#include "worker/service/head_connection.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"
#include "worker/service/recorder.h"
#include "worker/service/submission.h"
#include "worker/session_over.h"

namespace rt::worker {
namespace {

// How long a call to an actor may wait for others to share its write with.
constexpr int64_t kCallFlushUs = 1000;

}  // namespace

ActorClient::ActorClient(const Parts& parts)
    : parts_(parts),
      calls_(*this, parts.shared.settings()),
      tick_(parts.shared.loop,
            [this] {
              assert_locked();
              drive([](ActorCalls& calls, Now now) { calls.tick(now); });
            }),
      creations_(parts.head, parts.objects, calls_, parts.shared.stopping) {}

void ActorClient::subscribe_actor(const ActorId& id) {
  if (!parts_.head.keep_actor(id)) return;
  parts_.head.with([this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection)
      return calls_.give_up(id, "the head cannot be reached: " + connection.error().message);
    proto::SubscribeRequest request;
    request.add_actor_ids(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
              [this, id](Result<proto::Empty> subscribed) {
                assert_locked();
                // After a lost connection the session asks again.
                if (!subscribed && !may_recover(subscribed.error().code)) {
                  parts_.head.forget_actor(id);
                  return calls_.give_up(id, "the head does not tell this process of it: " +
                                                subscribed.error().message);
                }
                // The state came before this answer.
                const ActorLink* actor = calls_.find(id);
                if (subscribed && actor && !actor->info.has_spec())
                  drive([&](ActorCalls& calls, Now now) { calls.actor_unknown(id, now); });
              });
  });
}

void ActorClient::subscriptions_renewed() {
  drive([](ActorCalls& calls, Now now) { calls.subscriptions_renewed(now); });
}

ActorSink::Maker ActorClient::maker_of(const ActorId& id) const {
  if (creations_.is_registering(id)) return Maker::kThisProcess;
  const bool has_handle = parts_.objects.refs().find(handle_object_of(id)) != nullptr;
  return has_handle ? Maker::kAnother : Maker::kNobody;
}

bool ActorClient::forget_actor(const ActorId& id) {
  if (parts_.objects.refs().find(handle_object_of(id)) || creations_.contains(id)) return false;
  parts_.head.forget_actor(id);
  return true;
}

void ActorClient::connect_actor(const ActorLink& actor) {
  ActorId id = actor.id;
  int64_t epoch = actor.info.epoch();
  parts_.peers.with(actor.info.address(), [this, id, epoch](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    ActorLink* actor = calls_.find(id);
    if (!actor || actor->info.epoch() != epoch) return;
    if (!link) {
      drive([&](ActorCalls& calls, Now now) { calls.connection_lost(id, now); });
      return;
    }
    (*link)->actor = id;
    parts_.submission.announce_recording(**link);
    calls_.connected(id, **link);
    (*link)->connection->flush();
  });
}

void ActorClient::link_closed(const Link& link) {
  const ActorLink* actor = calls_.find(link.actor);
  // The actor may have another connection already, to a later life.
  if (!actor || actor->channel != &link) return;
  drive([&](ActorCalls& calls, Now now) { calls.connection_lost(link.actor, now); });
}

void ActorClient::push_call(const ActorLink& actor, const Task& task) {
  Link& link = link_of(*actor.channel);
  parts_.submission.write_task(link, task);
  if (actor.in_flight.size() == 1 || link.connection->queued_bytes() > 8192) {
    link.connection->flush();
    return;
  }
  // Calls of a burst share a write. One that the actor can start beside the earlier ones must not
  // wait for their replies, and this thread may submit nothing else for long: a timer sends it.
  parts_.pump.flush_within(kCallFlushUs);
}

void ActorClient::window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                              bool tell) {
  if (parts_.shared.stopping) return;
  if (first) parts_.submission.waiting().calls_held_back();
  if (!tell) return;
  const proto::ActorSpec& spec = actor.info.spec();
  std::string group = lane.group.empty() ? "" : " in its concurrency group '" + lane.group + "'";
  parts_.notices.tell(
      fmt::format("The actor {} {} has {} unanswered calls of this process{}. Further "
                  "calls wait at their caller until some of these have ended. Get "
                  "results before you call again, or raise the setting "
                  "actor_max_in_flight (RAY_actor_max_in_flight, now {}).",
                  spec.class_name(), actor.id.hex(), lane.in_flight, group,
                  parts_.shared.settings().actor_max_in_flight));
}

void ActorClient::query_actor(const ActorId& id) {
  parts_.head.with([this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection) return drive([&](ActorCalls& calls, Now now) { calls.query_failed(id, now); });
    proto::GetActorRequest request;
    request.set_actor_id(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::GetActor, request, 10'000'000,
              [this, id](Result<proto::GetActorReply> reply) {
                assert_locked();
                drive([&](ActorCalls& calls, Now now) {
                  if (!reply) return calls.query_failed(id, now);
                  calls.query_answered(id, reply->found() ? &reply->actor() : nullptr, now);
                });
              });
  });
}

void ActorClient::update(const proto::ActorInfo& info) {
  ActorId id = ActorId::from_binary(info.spec().actor_id());
  bool made = info.state() == proto::ACTOR_ALIVE && info.spec().max_restarts() == 0;
  if (made || info.state() == proto::ACTOR_DEAD) creations_.forget(id);
  // A dead actor does not count against the head's limit for a connection.
  if (info.state() == proto::ACTOR_DEAD) parts_.head.forget_actor(id);
  drive([&](ActorCalls& calls, Now now) { calls.actor_update(id, info, now); });
}

void ActorClient::complete_spec(const ActorId& id, proto::ActorSpec* spec) {
  spec->set_actor_id(id.binary());
  spec->set_job_id(parts_.shared.context.job_id.binary());
  if (spec->ray_namespace().empty()) spec->set_ray_namespace(parts_.shared.context.ray_namespace);
  spec->mutable_creation()->set_runtime_env(
      merge_runtime_env(parts_.shared.runtime_env(), spec->creation().runtime_env()));
  if (parts_.groups.capturing()) parts_.groups.capture(spec->mutable_creation());
  if (TaskId parent = parts_.submission.parent_or_driver(submitting_task()); !parent.is_nil())
    spec->set_parent_task_id(parent.binary());
  spec->set_created_us(wall_now_us());
  *spec->mutable_owner() = parts_.shared.self.address();
  *spec->mutable_job_config() = parts_.shared.options.job_config;
  spec->mutable_job_config()->set_job_id(parts_.shared.context.job_id.binary());
  spec->set_submission_recorded(parts_.recorder.profiles());
}

Result<Actor> ActorClient::create(ActorOptions actor_options, std::span<const Arg> args,
                                  std::optional<proto::ActorInfo>* existing) {
  WorkerLock lock(parts_.shared.mutex);
  if (parts_.shared.stopping) return session_over();
  // The last handle to an actor of the same name may just have been dropped, and the head must
  // hear of that first.
  parts_.objects.refs().drain_releases();
  proto::RegisterActorRequest request;
  proto::ActorSpec& spec = *request.mutable_spec();
  spec = std::move(actor_options.spec);
  if (Status small = check_spec_size(spec.ByteSizeLong(), "an actor"); !small) return small.error();
  request.set_get_if_exists(actor_options.get_if_exists);
  ActorId id = make_actor_id(parts_.shared.context.job_id, parts_.shared.self.rng().next(),
                             static_cast<uint32_t>(parts_.shared.self.rng().next()));
  complete_spec(id, &spec);
  // Used only to encode the arguments as those of a task.
  Task arguments;
  RT_TRY(parts_.submission.build_args(lock, arguments, args));
  Actor actor{id, {}};
  if (!spec.detached()) {
    ObjectEntry* handle = parts_.objects.refs().create(handle_object_of(id));
    handle->kind = ObjectEntry::Kind::kActorHandle;
    handle->state = ObjectState::kInMemory;
    actor.handle = Ref(handle);
  }
  const bool detached = spec.detached();
  // Its name may be taken. And no handle of a detached actor is counted: a process that gets one
  // could not tell an actor that the head is about to know from one that the head has forgotten.
  const bool must_be_registered = detached || !spec.name().empty();
  auto answer = std::make_shared<std::optional<Result<proto::RegisterActorReply>>>();
  creations_.start(id, std::move(request), std::move(arguments),
                   [this, id, must_be_registered, answer](Result<proto::RegisterActorReply> reply) {
                     assert_locked();
                     if (!reply && !must_be_registered) creations_.failed(id, reply.error());
                     // To hear when the arguments are no longer needed.
                     if (reply && !reply->existed()) calls_.link(id);
                     *answer = std::move(reply);
                   });
  parts_.shared.loop.flush_all();
  if (!must_be_registered) {
    // The handle may leave this process right after the return, and the process may end then. The
    // request leaves before: nobody waits for an actor of which the head will never hear. Only the
    // first request of a process has to wait, for its connection to the head. What a driver makes
    // ends with it, so a driver goes on when wait_until() has it look for signals.
    parts_.pump.wait_until(lock, -1, [&] {
      assert_locked();
      return parts_.shared.stopping || parts_.head.is_open() || parts_.head.is_lost() || *answer;
    });
    parts_.shared.loop.flush_all();
    return actor;
  }

  if (Status waited = parts_.pump.await_answer(lock, [&] { return answer->has_value(); });
      !waited) {
    // The actor goes with its handle, which a detached one does not have.
    if (detached) out_of_scope(id);
    return waited.error();
  }
  Result<proto::RegisterActorReply>& reply = **answer;
  if (reply && !reply->existed()) {
    parts_.shared.loop.flush_all();
    return actor;
  }
  creations_.forget(id);
  if (actor.handle) entry_of(actor.handle).kind = ObjectEntry::Kind::kObject;
  if (!reply) return reply.error();
  if (existing) *existing = std::move(*reply->mutable_existing());
  return Actor{ActorId::from_binary(reply->actor_id()), {}};
}

Status ActorClient::submit(const ActorId& actor, const Template* method,
                           const Worker::MethodOptions& method_options, std::span<const Arg> args,
                           std::vector<Ref>* returns) {
  WorkerLock lock(parts_.shared.mutex);
  if (parts_.shared.stopping) return session_over();
  parts_.objects.refs().drain_releases();
  Task* task = parts_.submission.tasks().take();
  task->id = make_task_id(parts_.submission.next_number(), actor);
  task->parent = submitting_task();
  task->created_us = wall_now_us();
  task->function = method;
  task->retries_left = static_cast<int32_t>(method_options.max_task_retries);
  if (Status built = parts_.submission.build_args(lock, *task, args); !built) {
    parts_.submission.tasks().give_back(task);
    return built;
  }
  ActorLink& link = calls_.link(actor);
  if (ObjectEntry* handle = parts_.objects.refs().find(link.handle))
    task->actor_handle = Ref(handle);
  link.out_of_order = method_options.out_of_order;
  if (Status admitted = calls_.admit(link, method_options.max_pending_calls); !admitted) {
    parts_.submission.tasks().give_back(task);
    return admitted;
  }
  parts_.submission.make_returns(*task, returns);
  // An argument that is an error travels like any value; the worker replies with it when the
  // call's turn comes.
  parts_.submission.wait_for_args(task, [this, actor] {
    assert_locked();
    calls_.args_ready(actor);
  });
  calls_.submit(link, task);
  parts_.pump.submitted();
  return {};
}

void ActorClient::out_of_scope(const ActorId& actor) {
  creations_.forget(actor);
  if (parts_.shared.stopping) return;
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(true);
  request.set_why(proto::ExitInfo::OUT_OF_SCOPE);
  request.set_graceful(true);
  end(std::make_shared<proto::KillActorRequest>(std::move(request)));
}

void ActorClient::end(std::shared_ptr<proto::KillActorRequest> request) {
  parts_.head.with([this, request](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection) return;
    rpc::call(**connection, &proto::HeadService::Stub::KillActor, *request, 10'000'000,
              [this, request](Result<proto::Empty> reply) {
                assert_locked();
                // The head went away with the request, or has not had time for it. Without the
                // request the actor would hold its resources until this process ends.
                if (!reply && may_recover(reply.error().code) && !parts_.shared.stopping)
                  end(request);
              });
  });
}

void ActorClient::fail_task(Task* task, const proto::ErrorValue& error) {
  parts_.submission.results().fail(task, error);
}

void ActorClient::attempt_failed(const Task& task, const proto::ErrorValue& error) {
  parts_.submission.results().attempt_failed(task, error);
}

}  // namespace rt::worker
