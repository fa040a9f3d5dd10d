// The connection of a driver to the head: models worker/service/head_connection.
#pragma once

#include <functional>
#include <vector>

#include "tests/sim/world.h"
#include "worker/core/head_contact.h"

namespace rt::sim {

class OwnerHead {
 public:
  using WithChannel = std::function<void(Result<ChannelPtr>)>;
  struct Environment {
    // Attempts to connect to the head.
    std::function<void(WithChannel)> connect;
    // Process::ring_by().
    std::function<void(Process::Alarm&, int64_t at_us, std::function<void()> ring)> ring_by;
    // The functions from here on are those of worker::HeadConnection::Hooks.
    std::function<void()> opened;
    std::function<bool()> needed;
    std::function<void()> renewed;
  };

  OwnerHead(World& world, Environment environment)
      : world_(world), environment_(std::move(environment)), contact_(world.settings, address_) {}

  // Calls `done` with the connection, at once or when it has been made or has failed.
  void with(WithChannel done);
  void subscribe(const proto::SubscribeRequest& request);
  // The first subscription is the caller's business.
  bool keep_actor(const ActorId& id) { return contact_.keep_actor(id); }
  void forget_actor(const ActorId& id) { contact_.forget_actor(id); }
  // `done` is not called if the connection is lost first.
  static void send_subscription(Channel& head, const proto::SubscribeRequest& request,
                                std::function<void()> done);

 private:
  void act(const worker::HeadContact::Turn& turn);
  void attempt();
  void answer(const Result<ChannelPtr>& channel);

  World& world_;
  const Environment environment_;
  const std::string address_ = "the head's address";
  ChannelPtr channel_;
  std::vector<WithChannel> waiters_;
  worker::HeadContact contact_;
  Process::Alarm alarm_;
};

}  // namespace rt::sim
