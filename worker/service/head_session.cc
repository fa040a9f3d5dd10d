#include "worker/service/head_session.h"

#include <fmt/core.h>

#include <utility>

#include "common/rpc/client.h"

namespace rt::worker {

HeadSession::HeadSession(net::Loop& loop, const Options& options, const Context& context,
                         const Self& self, const std::atomic<bool>& stopping, Notices& notices,
                         Hooks hooks)
    : loop_(loop),
      options_(options),
      context_(context),
      self_(self),
      stopping_(stopping),
      notices_(notices),
      hooks_(std::move(hooks)) {}

void HeadSession::with(WithConnection done) {
  if (connection_ && connection_->is_open()) {
    done(connection_);
    return;
  }
  waiters_.push_back(std::move(done));
  if (connecting_) return;
  auto address = net::Address::parse(context_.head_address);
  if (!address) return answer(address.error());
  connecting_ = true;
  rpc::connect(loop_, {*address, "self", ""}, self_.identity(),
               options_.settings.connect_timeout_ms * 1000,
               [this](Result<std::shared_ptr<rpc::Connection>> connection) {
                 assert_locked();
                 connecting_ = false;
                 connected(std::move(connection));
               });
}

void HeadSession::connected(Result<std::shared_ptr<rpc::Connection>> connection) {
  constexpr int64_t kPauseUs = 100'000;
  if (connection) {
    lost_us_ = 0;
    connection_ = *connection;
    connection_->set_closed_handler([this](const Error&) {
      assert_locked();
      lost();
    });
    hooks_.opened(connection_);
    resubscribe();
    return answer(connection_);
  }
  const int64_t now_us = loop_.now_us();
  if (lost_us_ == 0) lost_us_ = now_us;
  Error error = connection.error();
  if (!may_recover(error.code)) return answer(error);
  if (now_us - lost_us_ < options_.settings.head_reconnect_timeout_ms * 1000 && !stopping_) {
    loop_.run_after(kPauseUs, [this] {
      assert_locked();
      for (WithConnection& waiter : std::exchange(waiters_, {})) with(std::move(waiter));
    });
    return;
  }
  error.message =
      fmt::format("the cluster's head at {} could not be reached for {} s: {}",
                  context_.head_address, (now_us - lost_us_ + 500'000) / 1'000'000, error.message);
  answer(error);
}

void HeadSession::answer(const Result<std::shared_ptr<rpc::Connection>>& connection) {
  for (WithConnection& waiter : std::exchange(waiters_, {})) waiter(connection);
}

void HeadSession::lost() {
  constexpr int64_t kPauseUs = 50'000;
  connection_.reset();
  if (stopping_) return;
  lost_us_ = loop_.now_us();
  // Subscriptions are renewed as soon as the head is back.
  if (!actors_.empty() || !subscriptions_.logs_of_job().empty() || hooks_.needed())
    loop_.run_after(kPauseUs, [this] {
      assert_locked();
      with([](Result<std::shared_ptr<rpc::Connection>>) {});
    });
}

void HeadSession::subscribe(const proto::SubscribeRequest& request) {
  subscriptions_.MergeFrom(request);
  with([request](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection)
      rpc::call(**connection, &proto::HeadService::Stub::Subscribe, request, -1,
                [](Result<proto::Empty>) {});
  });
}

void HeadSession::resubscribe() {
  proto::SubscribeRequest all = subscriptions_;
  for (const auto& id : actors_) all.add_actor_ids(id);
  if (all.actor_ids().empty() && all.logs_of_job().empty()) return;
  rpc::call(*connection_, &proto::HeadService::Stub::Subscribe, all, -1,
            [this](Result<proto::Empty> subscribed) {
              assert_locked();
              if (subscribed) return hooks_.renewed();
              if (may_recover(subscribed.error().code)) return;
              notices_.tell(
                  "The head, which was started again, does not tell this process of its actors: " +
                  subscribed.error().message);
            });
}

void HeadSession::close() {
  if (connection_) connection_->set_closed_handler(nullptr);
  connection_.reset();
}

}  // namespace rt::worker
