// Actors as their creators and callers see them.
#include <fmt/core.h>

#include "worker/core/death.h"
#include "worker/core/runtime_env.h"
#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {
namespace {

// How long a call to an actor may wait for others to share its write with.
constexpr int64_t kCallFlushUs = 1000;

}  // namespace

void Worker::Impl::subscribe_actor(const ActorId& id) {
  if (!subscribed_actors.insert(id.binary()).second) return;
  with_head([this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) {
      proto::ActorInfo dead;
      dead.mutable_spec()->set_actor_id(id.binary());
      dead.set_state(proto::ACTOR_DEAD);
      dead.mutable_death()->set_message("the head cannot be reached: " +
                                        connection.error().message);
      actors->actor_update(id, &dead);
      return;
    }
    proto::SubscribeRequest request;
    request.add_actor_ids(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
              [this, id](Result<proto::Empty> subscribed) {
                // The state came before this answer. An actor that the head has never heard of is
                // either being made, if this process has a handle of it, or long dead.
                ActorLink* actor = actors->find(id);
                if (subscribed && actor && actor->state == ActorLink::State::kUnknown &&
                    !actor->info.has_spec() && !has_handle(id))
                  actors->actor_update(id, nullptr);
              });
  });
}

bool Worker::Impl::has_handle(const ActorId& id) {
  return refs->find(handle_object_of(id)) || actor_args.contains(id);
}

bool Worker::Impl::forget_actor(const ActorId& id) {
  if (has_handle(id)) return false;
  subscribed_actors.erase(id.binary());
  return true;
}

void Worker::Impl::connect_actor(ActorLink& actor) {
  ActorId id = actor.id;
  int64_t epoch = actor.info.epoch();
  actor.connection = nullptr;
  with_peer(actor.info.address(), [this, id, epoch](Result<std::shared_ptr<Link>> link) {
    ActorLink* actor = actors->find(id);
    if (!actor || actor->info.epoch() != epoch) return;
    if (!link) {
      actors->connection_lost(id);
      return;
    }
    (*link)->actor = id;
    announce_recording(**link);
    actor->connection = link->get();
    actors->connected(id);
    (*link)->connection->flush();
  });
}

void Worker::Impl::push_call(ActorLink& actor, Task& task) {
  Link& link = *static_cast<Link*>(actor.connection);
  write_task(link, task);
  if (actor.in_flight.size() == 1 || link.connection->queued_bytes() > 8192) {
    link.connection->flush();
    return;
  }
  // Calls of a burst share a write. One that the actor can start beside the earlier ones must not
  // wait for their replies, and this thread may submit nothing else for long: a timer sends it.
  if (flush_timer_set) return;
  flush_timer_set = true;
  // The loop calls flush_all() after it has dispatched a timer.
  loop->run_after(kCallFlushUs, [this] { flush_timer_set = false; });
  if (pumping) loop->wake();
}

void Worker::Impl::ask_again(const ActorId& id, int64_t delay_us) {
  loop->run_after(delay_us, [this, id] {
    ActorLink* actor = actors->find(id);
    if (actor && actor->state == ActorLink::State::kInterrupted) query_actor(id);
  });
}

void Worker::Impl::query_actor(const ActorId& id) {
  with_head([this, id](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) return ask_again(id, 1'000'000);
    proto::GetActorRequest request;
    request.set_actor_id(id.binary());
    rpc::call(**connection, &proto::HeadService::Stub::GetActor, request, 10'000'000,
              [this, id](Result<proto::GetActorReply> reply) {
                if (!reply) return ask_again(id, 500'000);
                actors->actor_update(id, reply->found() ? &reply->actor() : nullptr);
                ActorLink* actor = actors->find(id);
                if (actor && actor->state == ActorLink::State::kInterrupted) ask_again(id, 500'000);
              });
  });
}

void Worker::Impl::register_actor(std::shared_ptr<proto::RegisterActorRequest> request,
                                  std::function<void(Result<proto::RegisterActorReply>)> done) {
  with_head(
      [this, request, done = std::move(done)](Result<std::shared_ptr<rpc::Connection>> connection) {
        if (!connection) return done(connection.error());
        rpc::call(**connection, &proto::HeadService::Stub::RegisterActor, *request, 60'000'000,
                  [this, request, done](Result<proto::RegisterActorReply> reply) {
                    // The head went away with the request. It accepts the same registration again,
                    // whether or not the first one reached its disk.
                    bool again = !reply && may_recover(reply.error().code) && !stopping;
                    again ? register_actor(request, done) : done(std::move(reply));
                  });
      });
}

Result<Actor> Worker::Impl::create_actor(ActorOptions actor_options, std::span<const Arg> args) {
  Lock lock(mutex);
  if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  // The last handle to an actor of the same name may just have been dropped, and the head must
  // hear of that first.
  refs->drain_releases();
  auto request = std::make_shared<proto::RegisterActorRequest>();
  proto::ActorSpec& spec = *request->mutable_spec();
  spec = std::move(actor_options.spec);
  request->set_get_if_exists(actor_options.get_if_exists);
  ActorId id = make_actor_id(context.job_id, rng.next(), static_cast<uint32_t>(rng.next()));
  spec.set_actor_id(id.binary());
  spec.set_job_id(context.job_id.binary());
  if (spec.ray_namespace().empty()) spec.set_ray_namespace(context.ray_namespace);
  spec.mutable_creation()->set_runtime_env(
      merge_runtime_env(runtime_env(), spec.creation().runtime_env()));
  if (TaskId parent = parent_or_driver(submitting_task()); !parent.is_nil())
    spec.set_parent_task_id(parent.binary());
  spec.set_created_us(wall_now_us());
  *spec.mutable_owner() = self_address;
  *spec.mutable_job_config() = options.job_config;
  spec.mutable_job_config()->set_job_id(context.job_id.binary());
  spec.set_submission_recorded(profiles);

  // Used only to encode the arguments as those of a task.
  Task staging;
  RT_TRY(build_args(lock, staging, args));
  // Those inside inline values, and those that stand for arguments: given as such, or made for
  // large values.
  std::vector<Ref> arg_refs = staging.held;
  for (const Task::Arg& arg : staging.args) {
    if (arg.ref) arg_refs.push_back(arg.ref);
  }
  auto unready = std::make_shared<int>(0);
  auto fill = [this, request, inlined = std::move(staging.inlined),
               list = std::move(staging.args)] {
    for (const Task::Arg& arg : list) {
      proto::TaskArg* out = request->mutable_spec()->add_args();
      if (!arg.ref) {
        out->set_inlined(inlined.substr(arg.offset, arg.size));
        continue;
      }
      const auto& entry = *static_cast<const ObjectEntry*>(arg.ref.entry());
      if (entry.state == ObjectState::kInMemory) {
        // The actor's own error will tell of this one.
        entry.unseen_error.store(false, std::memory_order_relaxed);
        out->set_inlined(std::string(as_view(entry.blob.bytes())));
      } else {
        out->set_object_id(entry.id.binary());
        *out->mutable_owner() = owner_of(entry);
      }
    }
  };
  Actor actor{id, {}};
  if (!spec.detached()) {
    ObjectEntry* handle = refs->create(handle_object_of(id));
    handle->kind = ObjectEntry::Kind::kActorHandle;
    handle->state = ObjectState::kInMemory;
    actor.handle = Ref(handle);
  }
  actor_args[id] = arg_refs;

  auto fail = [this, id](const Error& error) {
    proto::ActorInfo dead;
    dead.mutable_spec()->set_actor_id(id.binary());
    dead.set_state(proto::ACTOR_DEAD);
    dead.mutable_death()->set_message(error.message);
    actors->link(id);
    actors->actor_update(id, &dead);
  };
  bool named = !spec.name().empty();
  auto answer = std::make_shared<std::optional<Result<proto::RegisterActorReply>>>();
  auto send = [this, request, fill, fail, answer, id, named] {
    fill();
    register_actor(request,
                   [this, fail, answer, id, named](Result<proto::RegisterActorReply> reply) {
                     if (!reply && !named) fail(reply.error());
                     if (reply && !reply->existed()) actors->link(id);
                     *answer = std::move(reply);
                   });
  };
  // The actor is placed when its arguments exist, because a process that waits for them would hold
  // its resources in the meantime.
  for (const Ref& ref : arg_refs) {
    auto& entry = *static_cast<ObjectEntry*>(ref.entry());
    bool top_level =
        std::any_of(args.begin(), args.end(), [&](const Arg& a) { return a.ref && *a.ref == ref; });
    if (!top_level || entry.ready) continue;
    ++*unready;
    entry.waiters.push_back([unready, send] {
      if (--*unready == 0) send();
    });
    resolve(entry);
  }
  if (*unready == 0) send();
  // To hear when the arguments are no longer needed.
  const bool follow = spec.detached() || !arg_refs.empty();
  if (follow && !named) actors->link(id);
  loop->flush_all();
  if (!named) return actor;

  while (!answer->has_value()) {
    wait_until(lock, -1, [&] { return answer->has_value() || stopping; });
    if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  }
  if (!**answer) {
    actor_args.erase(id);
    if (actor.handle)
      static_cast<ObjectEntry*>(actor.handle.entry())->kind = ObjectEntry::Kind::kObject;
    return (*answer)->error();
  }
  const proto::RegisterActorReply& reply = ***answer;
  if (reply.existed()) {
    actor_args.erase(id);
    if (actor.handle)
      static_cast<ObjectEntry*>(actor.handle.entry())->kind = ObjectEntry::Kind::kObject;
    return Actor{ActorId::from_binary(reply.actor_id()), {}};
  }
  if (follow) actors->link(id);
  loop->flush_all();
  return actor;
}

Status Worker::Impl::submit_method(const ActorId& actor, const Template* method,
                                   const MethodOptions& method_options, std::span<const Arg> args,
                                   std::vector<Ref>* returns) {
  Lock lock(mutex);
  if (stopping) return make_error(Code::kUnavailable, "Ray has been shut down");
  refs->drain_releases();
  Task* task = tasks.take();
  task->id = make_task_id(++next_task_unique, actor);
  task->parent = submitting_task();
  task->created_us = wall_now_us();
  task->function = method;
  task->retries_left = static_cast<int32_t>(method_options.max_task_retries);
  if (Status built = build_args(lock, *task, args); !built) {
    tasks.give_back(task);
    return built;
  }
  if (ObjectEntry* handle = refs->find(handle_object_of(actor))) task->actor_handle = Ref(handle);
  ActorLink& link = actors->link(actor);
  link.out_of_order = method_options.out_of_order;
  if (Status admitted = actors->admit(actor, method_options.max_pending_calls); !admitted) {
    tasks.give_back(task);
    return admitted;
  }
  make_returns(*task, returns);
  // An argument that is an error travels like any value; the worker replies with it when the
  // call's turn comes.
  wait_for_args(task, [this, actor] { actors->args_ready(actor); });
  actors->submit(actor, task);
  if (++submits_since_poll >= 64) {
    submits_since_poll = 0;
    poll_once(lock);
  }
  if (background_asleep.load(std::memory_order_relaxed)) leave_wait();
  return {};
}

void Worker::Impl::actor_out_of_scope(const ActorId& actor) {
  actor_args.erase(actor);
  if (stopping) return;
  proto::KillActorRequest request;
  request.set_actor_id(actor.binary());
  request.set_no_restart(true);
  request.set_why(proto::ExitInfo::OUT_OF_SCOPE);
  request.set_graceful(true);
  with_head([request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection)
      rpc::call(**connection, &proto::HeadService::Stub::KillActor, request, 10'000'000,
                [](Result<proto::Empty>) {});
  });
}

}  // namespace rt::worker
