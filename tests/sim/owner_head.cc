#include "tests/sim/owner_head.h"

#include "tests/sim/sim_head.h"

namespace rt::sim {

void OwnerHead::with(WithChannel done) {
  if (channel_ && channel_->open()) return done(channel_);
  waiters_.push_back(std::move(done));
  act(contact_.wanted());
}

void OwnerHead::act(const worker::HeadContact::Turn& turn) {
  if (turn.connect) attempt();
  if (turn.give_up) answer(*turn.give_up);
  environment_.ring_by(alarm_, contact_.next_tick_us(),
                       [this] { act(contact_.tick(world_.clock.now())); });
}

void OwnerHead::attempt() {
  environment_.connect([this](Result<ChannelPtr> channel) {
    if (!channel) return act(contact_.failed(channel.error(), world_.clock.now()));
    channel_ = *channel;
    channel_->on_closed = [this] {
      channel_.reset();
      contact_.lost(environment_.needed(), world_.clock.now());
      act({});
    };
    const auto subscriptions = contact_.connected();
    environment_.opened();
    if (subscriptions) send_subscription(*channel_, *subscriptions, environment_.renewed);
    answer(channel_);
  });
}

void OwnerHead::answer(const Result<ChannelPtr>& channel) {
  for (WithChannel& waiter : std::exchange(waiters_, {})) waiter(channel);
}

void OwnerHead::subscribe(const proto::SubscribeRequest& request) {
  contact_.keep(request);
  with([request](Result<ChannelPtr> channel) {
    if (channel) send_subscription(**channel, request, [] {});
  });
}

void OwnerHead::send_subscription(Channel& head, const proto::SubscribeRequest& request,
                                  std::function<void()> done) {
  head.call<proto::Empty>(
      "subscribe",
      [request](Channel& at, Channel::Answer<proto::Empty> answer) {
        head_at(at).subscribe(at, request, std::move(answer));
      },
      [done = std::move(done)](Result<proto::Empty> subscribed) {
        if (subscribed) return done();
        if (!may_recover(subscribed.error().code))
          violation("the head refuses a subscription: " + subscribed.error().message);
      });
}

}  // namespace rt::sim
