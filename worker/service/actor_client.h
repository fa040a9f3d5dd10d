// Actors as their callers see them, and the first half of their creation: what ActorCalls wants
// goes to the head and to the workers in which the actors live.
//
// All methods are called with the worker's mutex held, except create() and submit(), which take it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/core/actor_calls.h"
#include "worker/service/actor_creations.h"
#include "worker/worker.h"

namespace rt::worker {

class ActorClient final : public ActorComm {
 public:
  // `impl` must outlive this object.
  explicit ActorClient(Worker::Impl& impl);
  ActorCalls& calls() { return calls_; }
  const ActorCalls& calls() const { return calls_; }

  // See Worker::create_actor() and Worker::submit_method().
  Result<Actor> create(ActorOptions options, std::span<const Arg> args);
  Status submit(const ActorId& actor, const Template* method, const Worker::MethodOptions& options,
                std::span<const Arg> args, std::vector<Ref>* returns);

  // News of the head.
  void update(const proto::ActorInfo& info);
  // The last handle is gone.
  void out_of_scope(const ActorId& actor);
  // Whether an actor waits for arguments that only this process can deliver.
  bool any_undelivered() const { return creations_.any_undelivered(); }

  void subscribe_actor(const ActorId& id) override;
  bool forget_actor(const ActorId& id) override;
  void connect_actor(ActorLink& actor) override;
  void push_call(ActorLink& actor, Task& task) override;
  void window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                   bool tell) override;
  void ask_again(const ActorId& id, int64_t delay_us) override;
  void fail_task(Task* task, const proto::ErrorValue& error) override;
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override;

 private:
  // Whether this process has a handle, or made the actor and the actor has not ended.
  bool has_handle(const ActorId& id);
  void query_actor(const ActorId& id);

  Worker::Impl& impl_;
  ActorCalls calls_;
  ActorCreations creations_;
};

}  // namespace rt::worker
