#include "tests/sim/node_head.h"

#include "tests/sim/sim_head.h"

namespace rt::sim {

void NodeHead::act(const node::HeadSession::Turn& turn) {
  if (turn.give_up) return events_.on_fatal();
  if (turn.close) channel_->close();
  if (turn.connect) attempt();
  events_.ring_by(alarm_, session_.next_tick_us(),
                  [this] { act(session_.tick(world_.clock.now())); });
}

void NodeHead::attempt() {
  events_.connect([this](Result<ChannelPtr> channel) {
    channel ? connected(*channel) : act(session_.failed(channel.error(), world_.clock.now()));
  });
}

void NodeHead::connected(const ChannelPtr& channel) {
  channel_ = channel;
  channel_->on_closed = [this] { lost(); };
  proto::RegisterNodeRequest request;
  events_.fill_registration(&request);
  queue_.registering();
  channel_->call<proto::RegisterNodeReply>(
      "register node",
      [request](Channel& at, Channel::Answer<proto::RegisterNodeReply> answer) {
        head_at(at).register_node(at, request, std::move(answer));
      },
      [this, current = channel_.get()](Result<proto::RegisterNodeReply> reply) {
        if (channel_.get() != current) return;
        if (!reply) return act(session_.refused(reply.error()));
        session_.registered();
        events_.on_registered(*reply);
        if (is_registered()) queue_.open();
      },
      world_.settings.connect_timeout_ms * 1000);
}

void NodeHead::lost() {
  channel_.reset();
  queue_.close();
  if (session_.lost(world_.clock.now())) events_.on_lost();
  act(session_.failed(make_error(Code::kUnavailable, "lost"), world_.clock.now()));
}

}  // namespace rt::sim
