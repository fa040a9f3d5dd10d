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
// Pure: events come in through methods, decisions go out through ActorComm. Guarded by the
// worker's mutex.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/config/settings.h"
#include "worker/core/task.h"

namespace rt::worker {

struct ActorLink {
  enum class State { kUnknown, kConnecting, kAlive, kInterrupted, kRestarting, kDead };
  ActorId id;
  ObjectId handle;  // handle_object_of(id)
  State state = State::kUnknown;
  bool out_of_order = false;
  proto::ActorInfo info;  // As last heard from the head.
  // The calls to one concurrency group.
  struct Lane {
    std::string group;        // "" for the default group.
    std::deque<Task*> queue;  // Not sent yet; in order.
    int64_t in_flight = 0;
    int64_t window = 0;     // The most calls in flight.
    bool reported = false;  // ActorComm::window_full() was called for it.
    bool full() const { return in_flight >= window; }
    // A call that could be sent waits because the window is full.
    bool holds_back() const { return full() && !queue.empty() && queue.front()->unready_args == 0; }
  };
  // That of the default group is the first. Those of other groups follow in the order of their
  // first calls.
  std::vector<Lane> lanes;
  std::deque<Task*> in_flight;  // Calls of all lanes, in the order of their numbers.
  uint32_t next_seq = 1;
  void* connection = nullptr;  // Owned by the service.
  int connect_failures = 0;
  // The head's news that the life this link is connected to has ended, while replies of that life
  // may still be unread in the connection. It takes effect once the connection has been read to its
  // end, or when the head has confirmed it. Null at all other times.
  std::unique_ptr<proto::ActorInfo> end_of_life;
};

class ActorComm {
 public:
  virtual ~ActorComm() = default;
  // Answered by actor_update(), once and at each change.
  virtual void subscribe_actor(const ActorId& id) = 0;
  // Asked for an actor that has been dead for long. True: it may be forgotten, and a later use
  // subscribes again. False: this process still holds a handle.
  virtual bool forget_actor(const ActorId& id) = 0;
  // Answered by connected() or connection_lost().
  virtual void connect_actor(ActorLink& actor) = 0;
  virtual void push_call(ActorLink& actor, Task& task) = 0;
  // Calls wait because the window of their lane is full. `first`: none of this process did before;
  // that is not said again until ActorCalls::held_back() has returned 0. `tell`: the user does not
  // know of this lane yet, and has been told of a few only.
  virtual void window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                           bool tell) = 0;
  // Asks the head for the state, which comes as actor_update().
  virtual void ask_again(const ActorId& id, int64_t delay_us) = 0;
  // Takes over the task.
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;
  // The attempt failed, and another one follows.
  virtual void attempt_failed(const Task& task, const proto::ErrorValue& error) = 0;
};

class ActorCalls {
 public:
  ActorCalls(ActorComm& comm, const Settings& settings);
  ~ActorCalls();

  // The link of an actor, made at its first use by subscribing. The reference is valid until
  // another link is made.
  ActorLink& link(const ActorId& id);
  ActorLink* find(const ActorId& id);
  // Fails with kResourceExhausted when max_pending_calls calls (-1: no limit) are pending already.
  static Status admit(const ActorLink& actor, int64_t max_pending_calls);
  void submit(ActorLink& actor, Task* task);
  // The arguments of a queued call have become ready.
  void args_ready(const ActorId& id);
  // This process knows that the actor will never answer: its calls fail.
  void give_up(const ActorId& id, const std::string& why);
  // Null: the head does not know the actor.
  void actor_update(const ActorId& id, const proto::ActorInfo* info);
  void connected(const ActorId& id);
  void connection_lost(const ActorId& id);

  // The local node-manager is gone for good, so every actor counts as dead in this process.
  void close(const proto::ExitInfo& why);

  Task* reply_of(ActorLink& actor, uint32_t seq);
  void finished(ActorLink& actor, Task* task);
  void retry(ActorLink& actor, Task* task);
  // Cancels a call that has not ended: a queued one fails as cancelled, one in flight is not
  // retried. True when the actor's process must be told.
  bool cancel(ActorLink& actor, Task* task);
  int64_t pending() const;
  // The number of calls that are not sent because the window of their lane is full.
  int64_t held_back();
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
  void settle_uncertain(ActorLink& actor);
  void fail_all(ActorLink& actor, const proto::ExitInfo& death);
  void forget_old_dead();

  ActorComm& comm_;
  const Settings& settings_;
  std::optional<proto::ExitInfo> closed_;
  std::unordered_map<ActorId, std::unique_ptr<ActorLink>> actors_;
  std::deque<ActorId> dead_;  // Oldest first; bounded, see forget_old_dead().
  int windows_reported_ = 0;
  bool held_back_told_ = false;  // ActorComm::window_full() was called with `first`.
};

}  // namespace rt::worker
