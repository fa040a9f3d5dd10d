// The actors that a driver makes and calls: an ActorCalls with a model of
// worker/service/actor_client.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/sim/owner_head.h"
#include "tests/sim/world.h"
#include "worker/core/actor_calls.h"

namespace rt::sim {

class OwnerActors final : private worker::ActorSink {
 public:
  using WithChannel = std::function<void(Result<ChannelPtr>)>;
  struct Environment {
    // Calls back with the connection to the process, which is used for the actor from then on.
    std::function<void(const proto::WorkerAddress&, WithChannel)> with_peer;
    std::function<void(const WorkerId&, const ActorId&)> use_for;
    std::function<void(int64_t delay_us, const char* what, std::function<void()> run)> after;
    // Runs an event of the calls.
    std::function<void(const std::function<void()>&)> drive;
    // A call has ended with this error.
    std::function<void(worker::Task*, const proto::ErrorValue&)> fail;
  };

  // `head` outlives this object.
  OwnerActors(World& world, OwnerHead& head, Environment environment)
      : world_(world),
        head_(head),
        environment_(std::move(environment)),
        calls_(*this, world.settings) {}

  worker::ActorCalls& calls() { return calls_; }
  const worker::ActorCalls& calls() const { return calls_; }
  // `spec` has its id and its owner; `plan` says the rest. The head places the actor later.
  void create(proto::ActorSpec spec, const ActorPlan& plan);
  void kill(const ActorId& actor, bool no_restart);
  // News of the head.
  void update(const proto::ActorInfo& info);
  // The driver has ended, and so do the actors that it made, but for the detached ones.
  void owner_ended();
  const std::map<ActorId, proto::ExitInfo>& dead() const { return dead_; }
  // For people: what this driver knows of the actors with calls that have not ended.
  std::string unfinished() const;

 private:
  // ActorSink
  void subscribe_actor(const ActorId& id) override;
  Maker maker_of(const ActorId& id) const override;
  bool forget_actor(const ActorId& id) override;
  void connect_actor(const worker::ActorLink& actor) override;
  void push_call(const worker::ActorLink& actor, const worker::Task& task) override;
  void window_full(const worker::ActorLink&, const worker::ActorLink::Lane&, bool, bool) override {}
  void query_actor(const ActorId& id) override;
  void fail_task(worker::Task* task, const proto::ErrorValue& error) override {
    environment_.fail(task, error);
  }
  void attempt_failed(const worker::Task& task, const proto::ErrorValue& error) override;

  void send_registration(const proto::RegisterActorRequest& request);
  void registration_failed(const ActorId& id, const Error& why);

  World& world_;
  OwnerHead& head_;
  const Environment environment_;
  worker::ActorCalls calls_;
  std::set<ActorId> own_;
  std::set<ActorId> registering_;  // own actors that the head has not answered for
  std::map<ActorId, proto::ExitInfo> dead_;
};

}  // namespace rt::sim
