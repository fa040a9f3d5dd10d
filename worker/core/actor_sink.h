// The decisions of ActorCalls, for the service, a test or the simulator to carry out.
//
// Unlike those of a daemon, three of them may call back before they return: connect_actor() and
// subscribe_actor(), where the answer is known at once, and fail_task(), because the error may be
// what other calls wait for. ActorCalls calls each of them when its records say what is so.
#pragma once

#include <cstdint>

#include "common/proto/common.pb.h"
#include "worker/core/actor_link.h"

namespace rt::worker {

class ActorSink {
 public:
  virtual ~ActorSink() = default;
  // Answered by actor_update(), once and at each change, or by actor_unknown().
  virtual void subscribe_actor(const ActorId& id) = 0;
  // An actor that the head does not know may be about to be registered there by this process, which
  // hears of it if that fails, or by another, because this process has a handle from it.
  enum class Maker { kNobody, kThisProcess, kAnother };
  virtual Maker maker_of(const ActorId& id) const = 0;
  // Asked for an actor that has been dead for long. True: it may be forgotten, and a later use
  // subscribes again. False: this process still holds a handle.
  virtual bool forget_actor(const ActorId& id) = 0;
  // Answered by connected() or connection_lost().
  virtual void connect_actor(const ActorLink& actor) = 0;
  virtual void push_call(const ActorLink& actor, const Task& task) = 0;
  // Calls wait because the window of their lane is full. `first`: none of this process did before;
  // that is not said again until ActorCalls::count_held_back() has returned 0. `tell`: the user
  // does not know of this lane yet, and has been told of a few only.
  virtual void window_full(const ActorLink& actor, const ActorLink::Lane& lane, bool first,
                           bool tell) = 0;
  // Asks the head for the state. Answered by query_answered() or query_failed().
  virtual void query_actor(const ActorId& id) = 0;
  // The call has ended; ActorCalls does not know it any more.
  virtual void fail_task(Task* task, const proto::ErrorValue& error) = 0;
  // The attempt failed, and another one follows.
  virtual void attempt_failed(const Task& task, const proto::ErrorValue& error) = 0;
};

}  // namespace rt::worker
