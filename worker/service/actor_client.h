// Actors as their callers see them, and the first half of their creation: what ActorCalls wants
// goes to the head and to the workers in which the actors live.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/net/alarm.h"
#include "worker/core/actor_calls.h"
#include "worker/service/actor_creations.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/service/shared.h"
#include "worker/worker.h"

namespace rt::worker {

class Groups;
class HeadConnection;
class Notices;
class Objects;
class PeerLinks;
class Pump;
class Recorder;
class Submission;

class ActorClient final : public ActorSink {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    HeadConnection& head;
    PeerLinks& peers;
    Objects& objects;
    Submission& submission;
    Groups& groups;
    Recorder& recorder;
    Notices& notices;
  };
  explicit ActorClient(const Parts& parts);
  // For questions, and for the events that need no time: those of each call.
  ActorCalls& calls() REQUIRES(worker_mutex) { return calls_; }
  const ActorCalls& calls() const REQUIRES(worker_mutex) { return calls_; }

  // See Worker::create_actor() and Worker::submit_method().
  Result<Actor> create(ActorOptions options, std::span<const Arg> args,
                       std::optional<proto::ActorInfo>* existing) EXCLUDES(worker_mutex);
  Status submit(const ActorId& actor, const Template* method, const Worker::MethodOptions& options,
                std::span<const Arg> args, std::vector<Ref>* returns) EXCLUDES(worker_mutex);

  // News of the head.
  void update(const proto::ActorInfo& info) REQUIRES(worker_mutex);
  void subscriptions_renewed() REQUIRES(worker_mutex);
  // A connection to the process of an actor is gone.
  void link_closed(const Link& link) REQUIRES(worker_mutex);
  // The last handle is gone.
  void out_of_scope(const ActorId& actor) REQUIRES(worker_mutex);
  // Whether an actor waits for arguments that only this process can deliver.
  bool any_undelivered() const REQUIRES(worker_mutex) { return creations_.any_undelivered(); }

  void subscribe_actor(const ActorId& id) override REQUIRES(worker_mutex);
  Maker maker_of(const ActorId& id) const override REQUIRES(worker_mutex);
  bool forget_actor(const ActorId& id) override REQUIRES(worker_mutex);
  void connect_actor(const ActorLink& actor) override REQUIRES(worker_mutex);
  void push_call(const ActorLink& actor, const Task& task) override REQUIRES(worker_mutex);
  void window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                   bool tell) override REQUIRES(worker_mutex);
  void query_actor(const ActorId& id) override REQUIRES(worker_mutex);
  void fail_task(Task* task, const proto::ErrorValue& error) override REQUIRES(worker_mutex);
  void attempt_failed(const Task& task, const proto::ErrorValue& error) override
      REQUIRES(worker_mutex);

 private:
  // Asks the head to end an actor, as often as it takes.
  void end(std::shared_ptr<proto::KillActorRequest> request) REQUIRES(worker_mutex);
  // Adds to what the binding has filled in what only this process knows.
  void complete_spec(const ActorId& id, proto::ActorSpec* spec) REQUIRES(worker_mutex);
  // Passes an event on with the time, and lets `calls_` tick when it wants to.
  template <class Event>
  void drive(Event&& event) REQUIRES(worker_mutex) {
    event(calls_, system_now());
    tick_.ring_by(calls_.next_tick_us());
  }

  const Parts parts_;
  ActorCalls calls_ GUARDED_BY(worker_mutex);
  net::Alarm tick_ GUARDED_BY(worker_mutex);
  ActorCreations creations_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
