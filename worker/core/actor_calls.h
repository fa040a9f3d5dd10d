// Calls to actors, at their caller: ordered per actor, pushed straight to its worker, and settled
// when it dies or restarts.
//
//   unknown -> connecting -> alive -> interrupted -> alive, or
//                                                 -> restarting -> connecting -> ..., or
//                                                 -> dead
//
// Interrupted means that the connection broke and the head has not said yet what happened. It is
// then uncertain whether the calls in flight have run. Once the head says that the actor restarts,
// they run again as often as max_task_retries allows, else they fail with kActorUnavailable. Calls
// without retries that were made in the meantime fail as well, but run if the actor turns out to
// be alive as before.
//
// Each concurrency group of the actor has a lane of its own: its calls are sent in order, and at
// most as many of them are unanswered as its window allows. So a full lane does not hold back the
// others, and a window is never smaller than the number of calls that may run at the same time in
// its group, because each of those may wait for the next.
//
// The news of a death can come before the last replies of that process have been read. While calls
// are in flight over a connection that is still open, such news waits until the connection ends,
// but not for longer than the head takes to confirm it.
//
// Guarded by the worker's mutex.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/config/settings.h"
#include "worker/core/actor_link.h"
#include "worker/core/actor_sink.h"
#include "worker/core/task.h"

namespace rt::worker {

class ActorCalls {
 public:
  ActorCalls(ActorSink& sink, const Settings& settings);

  // The link of an actor, made at its first use by subscribing. The reference is valid until
  // another link is made.
  ActorLink& link(const ActorId& id);
  ActorLink* find(const ActorId& id);
  // Fails with kResourceExhausted when max_pending_calls calls (-1: no limit) are pending already.
  static Status admit(const ActorLink& actor, int64_t max_pending_calls);
  // The call is pending here until it comes to fail_task() or finished(), and exists at least as
  // long (TaskPool).
  void submit(ActorLink& actor, Task* task);
  // The arguments of a queued call have become ready.
  void args_ready(const ActorId& id);
  // This process knows that the actor will never answer: its calls fail.
  void give_up(const ActorId& id, const std::string& why);
  // News of the head.
  void actor_update(const ActorId& id, const proto::ActorInfo& info, Now now);
  // The head has answered that it does not know the actor.
  void actor_unknown(const ActorId& id, Now now);
  // The same as an answer to query_actor(); null: the head does not know the actor.
  void query_answered(const ActorId& id, const proto::ActorInfo* info, Now now);
  void query_failed(const ActorId& id, Now now);
  // The process has subscribed again, at a head that may have been started again. What it tells by
  // itself has come before.
  void subscriptions_renewed(Now now);
  // `channel` lives until connection_lost(), or until the actor is connected to anew.
  void connected(const ActorId& id, TaskChannel& channel);
  void connection_lost(const ActorId& id, Now now);
  // Asks the head about actors whose state only it can tell.
  void tick(Now now);
  int64_t next_tick_us() const { return asks_.empty() ? -1 : asks_.begin()->first; }

  // The local node-manager is gone for good, so every actor counts as dead in this process.
  void close(const proto::ExitInfo& why);

  Task* reply_of(ActorLink& actor, uint32_t seq);
  void finished(ActorLink& actor, Task* task);
  void retry(ActorLink& actor, Task* task);
  // Cancels a call that has not ended: a queued one fails as cancelled, one in flight is not
  // retried. True when the actor's process must be told.
  bool cancel(ActorLink& actor, Task* task);
  int64_t pending() const;
  // Returns the number of calls that are not sent because the window of their lane is full. When
  // there are none, window_full() says again when there are.
  int64_t count_held_back();
  // Calls `f(task, actor, in_flight)` for every call that has not ended.
  template <class F>
  void for_each_call(F&& f) const {
    for (const auto& [id, actor] : actors_) {
      for (const ActorLink::Lane& lane : actor->lanes) {
        for (const Task* task : lane.queue) f(*task, *actor, false);
      }
      for (const Task* task : actor->in_flight) f(*task, *actor, true);
    }
  }
  void check_invariants() const;

 private:
  // The index of the lane for calls of this group, which is made at its first use.
  uint16_t lane_of(ActorLink& actor, const std::string& group);
  int64_t window_of(const ActorLink& actor, const std::string& group) const;
  void pump(ActorLink& actor);
  void pump(ActorLink& actor, ActorLink::Lane& lane);
  // Takes a task out of those in flight.
  void remove_in_flight(ActorLink& actor, Task* task);
  void apply_news(ActorLink& actor, const proto::ActorInfo& info);
  // All changes of a state go through here.
  void set_state(ActorLink& actor, ActorLink::State state);
  // Lets tick() ask the head then; -1: not any more.
  void ask_at(ActorLink& actor, int64_t at_us);
  void settle_uncertain(ActorLink& actor);
  void fail_all(ActorLink& actor, const proto::ExitInfo& death);
  void forget_old_dead();

  ActorSink& sink_;
  const Settings& settings_;
  std::optional<proto::ExitInfo> closed_;
  std::unordered_map<ActorId, std::unique_ptr<ActorLink>> actors_;
  std::deque<ActorId> dead_;                    // Oldest first; bounded, see forget_old_dead().
  std::set<std::pair<int64_t, ActorId>> asks_;  // ActorLink::ask_at_us of all, in order.
  int windows_reported_ = 0;
  bool held_back_told_ = false;  // ActorSink::window_full() was called with `first`.
};

}  // namespace rt::worker
