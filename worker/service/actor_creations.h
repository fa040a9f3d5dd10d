// The creation of actors, at the process that creates them, from the registration at the head to
// the last start that may need the arguments.
//
// An actor is registered at once, so that its name is taken, others find it, and it ends with this
// process. The head places it when it has the constructor's arguments, which follow when all of
// them are ready: a process that waited for them would hold its resources in the meantime. The
// arguments by reference are held here until the actor has been made or, if it may restart, until
// it is dead.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/proto/head.pb.h"
#include "worker/core/task.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class ActorCalls;
class HeadConnection;
class Objects;

class ActorCreations {
 public:
  using Registered = std::function<void(Result<proto::RegisterActorReply>)>;

  // All of these must outlive this object.
  ActorCreations(HeadConnection& head, Objects& objects, ActorCalls& calls,
                 const std::atomic<bool>& stopping);
  ~ActorCreations();

  // Registers the actor of `request`. `arguments` are those of its constructor, encoded as a
  // task's. Calls `registered` once.
  void start(const ActorId& id, proto::RegisterActorRequest request, Task arguments,
             Registered registered) REQUIRES(worker_mutex);
  // The head has refused the actor: its calls in this process fail with `why`.
  void failed(const ActorId& id, const Error& why) REQUIRES(worker_mutex);
  // The actor needs its arguments no more.
  void forget(const ActorId& id) REQUIRES(worker_mutex);
  // Whether this process made the actor and holds its arguments.
  bool contains(const ActorId& id) const REQUIRES(worker_mutex) { return creations_.contains(id); }
  // Whether this process made the actor, and the head has not answered yet.
  bool is_registering(const ActorId& id) const REQUIRES(worker_mutex) {
    auto it = creations_.find(id);
    return it != creations_.end() && !it->second.registered;
  }
  // Whether an actor waits for arguments that only this process can deliver.
  bool any_undelivered() const REQUIRES(worker_mutex);

 private:
  struct Creation {
    std::vector<Task::Arg> args;
    std::string inlined;    // Empty once the head has the arguments.
    std::vector<Ref> held;  // References inside inline values.
    int unready = 0;
    bool registered = false;  // the head has answered the registration
    enum class State { kRegistering, kAwaited, kDelivered } state = State::kRegistering;
  };

  // Sends the request until the head has answered.
  void send(std::shared_ptr<proto::RegisterActorRequest> request, Registered done)
      REQUIRES(worker_mutex);
  // Sends the arguments if the head waits for them and all are ready.
  void deliver(const ActorId& id) REQUIRES(worker_mutex);
  // Moves the arguments to `spec`, and marks the creation as delivered.
  void fill(Creation& creation, proto::ActorSpec* spec) REQUIRES(worker_mutex);

  HeadConnection& head_;
  Objects& objects_;
  ActorCalls& calls_;
  const std::atomic<bool>& stopping_;
  std::unordered_map<ActorId, Creation> creations_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
