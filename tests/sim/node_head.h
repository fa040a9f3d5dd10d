// The link of a node to the head: models daemons/node_manager/service/head_link.
#pragma once

#include <functional>

#include "daemons/node_manager/core/head_queue.h"
#include "daemons/node_manager/core/head_session.h"
#include "tests/sim/world.h"

namespace rt::sim {

class NodeHead {
 public:
  struct Events {
    // Attempts to connect to the head.
    std::function<void(std::function<void(Result<ChannelPtr>)>)> connect;
    // Process::ring_by().
    std::function<void(Process::Alarm&, int64_t at_us, std::function<void()> ring)> ring_by;
    // The functions from here on are those of node::HeadLink::Events.
    std::function<void(proto::RegisterNodeRequest*)> fill_registration;
    std::function<void(const proto::RegisterNodeReply&)> on_registered;
    std::function<void()> on_lost, on_fatal;
  };
  NodeHead(World& world, bool is_head_node, Events events)
      : world_(world),
        events_(std::move(events)),
        session_(world.settings, "the head's address", is_head_node) {}

  void start() { act(session_.start(world_.clock.now())); }
  bool is_registered() const { return session_.is_registered(); }
  // Null while not registered.
  Channel* channel() const { return is_registered() ? channel_.get() : nullptr; }

  template <class Request>
  using Deliver = void (*)(Channel&, const Request&, Channel::Answer<proto::Empty>);
  template <class Request>
  void send_reliably(const char* what, Deliver<Request> deliver, const Request& request,
                     node::HeadQueue::Until until = node::HeadQueue::Until::kDelivered) {
    auto send = [this, what, deliver, request](node::HeadQueue::Done done) {
      channel_->call<proto::Empty>(
          what,
          [deliver, request](Channel& at, Channel::Answer<proto::Empty> answer) {
            deliver(at, request, std::move(answer));
          },
          [done](Result<proto::Empty> reply) { done(reply || !may_recover(reply.error().code)); },
          kTimeoutUs);
    };
    queue_.add(std::move(send), until);
  }

 private:
  static constexpr int64_t kTimeoutUs = 30'000'000;

  void act(const node::HeadSession::Turn& turn);
  void attempt();
  void connected(const ChannelPtr& channel);
  void lost();

  World& world_;
  const Events events_;
  ChannelPtr channel_;
  node::HeadSession session_;
  node::HeadQueue queue_{[](int64_t) { violation("too much waits for the head"); }};
  Process::Alarm alarm_;
};

}  // namespace rt::sim
