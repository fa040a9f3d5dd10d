#include "worker/service/head_connection.h"

#include <utility>

#include "common/base/clock.h"
#include "common/rpc/client.h"

namespace rt::worker {

HeadConnection::HeadConnection(net::Loop& loop, const Options& options, const Context& context,
                               const Self& self, const std::atomic<bool>& stopping,
                               Notices& notices, Hooks hooks)
    : loop_(loop),
      options_(options),
      context_(context),
      self_(self),
      stopping_(stopping),
      notices_(notices),
      hooks_(std::move(hooks)),
      contact_(options.settings, context.head_address),
      alarm_(loop, [this] {
        assert_locked();
        act(contact_.tick(now()));
      }) {}

void HeadConnection::with(rpc::WithConnection done) {
  if (connection_ && connection_->is_open()) {
    done(connection_);
    return;
  }
  waiters_.add(std::move(done));
  act(contact_.wanted());
}

Now HeadConnection::now() const { return {loop_.now_us(), wall_now_us()}; }

void HeadConnection::act(const HeadContact::Turn& turn) {
  if (turn.connect) attempt();
  if (turn.give_up) waiters_.answer(*turn.give_up);
  alarm_.ring_by(contact_.next_tick_us());
}

void HeadConnection::attempt() {
  auto address = net::Address::parse(context_.head_address);
  if (!address) return failed(address.error());
  rpc::connect(loop_, {*address, "self", ""}, self_.identity(),
               options_.settings.connect_timeout_ms * 1000,
               [this](Result<std::shared_ptr<rpc::Connection>> connection) {
                 assert_locked();
                 connection ? connected(std::move(*connection)) : failed(connection.error());
               });
}

void HeadConnection::failed(const Error& why) {
  if (stopping_) contact_.stop();
  act(contact_.failed(why, now()));
}

void HeadConnection::connected(std::shared_ptr<rpc::Connection> connection) {
  connection_ = std::move(connection);
  connection_->set_closed_handler([this](const Error&) {
    assert_locked();
    lost();
  });
  const auto subscriptions = contact_.connected();
  hooks_.opened(connection_);
  if (subscriptions) subscribe_again(*subscriptions);
  waiters_.answer(connection_);
}

void HeadConnection::lost() {
  connection_.reset();
  if (stopping_) return contact_.stop();
  contact_.lost(hooks_.needed(), now());
  act({});
}

void HeadConnection::subscribe(const proto::SubscribeRequest& request) {
  contact_.keep(request);
  with([request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection)
      rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
                [](Result<proto::Empty>) {});
  });
}

void HeadConnection::subscribe_again(const proto::SubscribeRequest& request) {
  rpc::call(*connection_, &proto::HeadService::Stub::Subscribe, request, -1,
            [this](Result<proto::Empty> subscribed) {
              assert_locked();
              if (subscribed) return hooks_.renewed();
              if (auto line = contact_.subscription_failed(subscribed.error()))
                notices_.tell(std::move(*line));
            });
}

void HeadConnection::close() {
  if (connection_) connection_->set_closed_handler(nullptr);
  connection_.reset();
}

}  // namespace rt::worker
