// Calls to actors, at their caller: ordered per actor, pushed straight to its worker, and settled
// when it dies or restarts.
//
//   unknown -> connecting -> alive -> interrupted -> (alive again | restarting -> connecting ... |
//   dead)
//
// Interrupted: the connection broke and the head has not said yet what happened. Calls in flight
// then are uncertain: once the head says restarting they run again as often as max_task_retries
// allows, else they fail with kActorUnavailable. So do calls without retries that were made
// meanwhile; if the actor is alive as before, they run.
//
// Pure: events in, decisions out through ActorComm. Guarded by the worker's mutex.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>

#include "common/config/settings.h"
#include "worker/core/task.h"

namespace rt::worker {

struct ActorLink {
  enum class State { kUnknown, kConnecting, kAlive, kInterrupted, kRestarting, kDead };
  ActorId id;
  State state = State::kUnknown;
  bool out_of_order = false;
  proto::ActorInfo info;    // as last heard from the head
  std::deque<Task*> queue;  // not sent; in order
  std::deque<Task*> in_flight;
  uint32_t next_seq = 1;
  void* connection = nullptr;  // the service's
  int connect_failures = 0;
};

class ActorComm {
 public:
  virtual ~ActorComm() = default;
  virtual void subscribe_actor(
      const ActorId& id) = 0;  // answered by actor_update(), now and at each change
  virtual bool forget_actor(const ActorId& id) = 0;  // dead for long: a later use subscribes again.
                                                     // False: this process holds a handle
  virtual void connect_actor(ActorLink& actor) = 0;  // answered by connected() or connection_lost()
  virtual void push_call(ActorLink& actor, Task& task) = 0;
  virtual void ask_again(const ActorId& id,
                         int64_t delay_us) = 0;  // then actor_update() with the head's answer
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;  // takes the task
  virtual void attempt_failed(const Task& task,
                              const proto::ErrorValue& error) = 0;  // and there will be another one
};

class ActorCalls {
 public:
  ActorCalls(ActorComm& comm, const Settings& settings);
  ~ActorCalls();

  ActorLink& link(const ActorId& id);  // made on first use: subscribes. Its address lasts until
                                       // another one is made
  ActorLink* find(const ActorId& id);
  // kResourceExhausted: max_pending_calls (-1: no limit) calls are waiting already.
  Status admit(const ActorId& id, int64_t max_pending_calls);
  void submit(const ActorId& id, Task* task);
  void args_ready(const ActorId& id);  // some queued call's arguments became ready
  void actor_update(const ActorId& id,
                    const proto::ActorInfo* info);  // null: the head does not know it
  void connected(const ActorId& id);
  void connection_lost(const ActorId& id);

  // The local node-manager is gone for good: every actor is as good as dead to this process.
  void close(const proto::ExitInfo& why);

  Task* reply_of(ActorLink& actor, uint32_t seq);
  void finished(ActorLink& actor, Task* task);
  void retry(ActorLink& actor, Task* task);
  // A call that has not ended: a queued one fails as cancelled, one in flight never runs again.
  // True when the actor's process is to be told.
  bool cancel(ActorLink& actor, Task* task);
  int64_t pending() const;
  // `f(task, actor, in_flight)` for every call that has not ended.
  template <class F>
  void for_each_call(F&& f) const {
    for (const auto& [id, actor] : actors_) {
      for (const Task* task : actor->queue) f(*task, *actor, false);
      for (const Task* task : actor->in_flight) f(*task, *actor, true);
    }
  }
  void check_invariants() const;

 private:
  void pump(ActorLink& actor);
  void settle_uncertain(ActorLink& actor);
  void fail_all(ActorLink& actor, const proto::ExitInfo& death);
  void forget_old_dead();

  ActorComm& comm_;
  const Settings& settings_;
  std::optional<proto::ExitInfo> closed_;
  std::unordered_map<ActorId, std::unique_ptr<ActorLink>> actors_;
  std::deque<ActorId> dead_;  // oldest first; the head remembers more of them
};

}  // namespace rt::worker
