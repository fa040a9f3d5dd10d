#include "daemons/node_manager/service/head_link.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/log.h"

namespace rt::node {
namespace {
constexpr size_t kMaxPending = 10'000;
constexpr int64_t kFirstPauseUs = 20'000, kMaxPauseUs = 1'000'000;
}  // namespace

HeadLink::HeadLink(net::Loop& loop, const Settings& settings, net::Address head, rpc::Identity me,
                   google::protobuf::Service* served, Events events)
    : loop_(loop),
      settings_(settings),
      head_(std::move(head)),
      me_(std::move(me)),
      served_(served),
      events_(std::move(events)) {}

HeadLink::~HeadLink() {
  *alive_ = false;
  if (timer_) loop_.cancel(timer_);
  if (connection_) {
    connection_->set_closed_handler(nullptr);
    connection_->close(make_error(Code::kUnavailable, "the node-manager ends"));
  }
}

void HeadLink::start() {
  lost_us_ = loop_.now_us();
  attempt();
}

void HeadLink::stop() {
  stopped_ = true;
  if (timer_) loop_.cancel(timer_);
  timer_ = 0;
}

void HeadLink::attempt() {
  timer_ = 0;
  rpc::Target target;
  target.address = head_;
  rpc::connect(loop_, target, me_, settings_.connect_timeout_ms * 1000,
               [this, alive = alive_](Result<std::shared_ptr<rpc::Connection>> result) {
                 if (!*alive || stopped_) return;
                 if (result) {
                   connected(std::move(*result));
                 } else {
                   retry_or_give_up(result.error());
                 }
               });
}

void HeadLink::retry_or_give_up(const Error& why) {
  if (stopped_) return;
  bool hopeless = why.code == Code::kUnauthenticated || why.code == Code::kWrongVersion ||
                  why.code == Code::kWrongCluster || why.code == Code::kProtocol;
  int64_t limit_ms =
      ever_registered_ ? settings_.head_reconnect_timeout_ms : settings_.connect_timeout_ms;
  int64_t away_us = loop_.now_us() - lost_us_;
  if (hopeless || away_us > limit_ms * 1000) {
    stopped_ = true;
    std::string message =
        hopeless
            ? fmt::format("the head at {} refuses this node: {}", head_.to_string(), why.message)
            : fmt::format("the head at {} could not be reached for {} s: {}", head_.to_string(),
                          (away_us + 500'000) / 1'000'000, why.message);
    events_.on_fatal(make_error(why.code, message));
    return;
  }
  pause_us_ = pause_us_ == 0 ? kFirstPauseUs : std::min(kMaxPauseUs, pause_us_ * 2);
  timer_ = loop_.run_after(pause_us_, [this] { attempt(); });
}

void HeadLink::connected(std::shared_ptr<rpc::Connection> connection) {
  connection_ = std::move(connection);
  connection_->add_service(served_);
  connection_->add_service(this);
  connection_->set_closed_handler([this](const Error& why) { lost(why); });
  proto::RegisterNodeRequest request;
  events_.fill_registration(&request);
  rpc::call(
      *connection_, &proto::HeadService::Stub::RegisterNode, request,
      settings_.connect_timeout_ms * 1000,
      [this, alive = alive_, current = connection_.get()](Result<proto::RegisterNodeReply> reply) {
        if (!*alive || stopped_ || connection_.get() != current) return;
        if (!reply) {
          // An error that does not mean "away" is the head's decision, so no other attempt helps.
          if (!may_recover(reply.error().code)) {
            stopped_ = true;
            events_.on_fatal(make_error(reply.error().code,
                                        fmt::format("the head at {} refuses this node: {}",
                                                    head_.to_string(), reply.error().message)));
            return;
          }
          return connection_->close(reply.error());
        }
        registered_ = ever_registered_ = true;
        pause_us_ = 0;
        if (me_.cluster_id.empty()) me_.cluster_id = reply->cluster_id();
        events_.on_registered(*reply);
        send_pending();
      });
}

void HeadLink::lost(const Error& why) {
  connection_.reset();
  if (registered_) {
    registered_ = false;
    lost_us_ = loop_.now_us();
    if (!stopped_) {
      RT_WARN("connection to the head at {} lost: {}", head_.to_string(), why.message);
      if (events_.on_lost) events_.on_lost(why);
    }
  }
  if (stopped_) return;
  // Posted, because this runs inside a callback of the connection that closes.
  timer_ = loop_.run_after(0, [this, why] {
    timer_ = 0;
    retry_or_give_up(why);
  });
}

void HeadLink::enqueue(Send send) {
  keep(++last_number_, std::move(send));
  send_pending();
}

void HeadLink::keep(uint64_t number, Send send) {
  pending_.emplace(number, std::move(send));
  if (pending_.size() <= kMaxPending) return;
  pending_.erase(pending_.begin());
  if (dropped_++ % 1000 == 0)
    RT_WARN("more than {} requests wait for the head: the oldest is dropped ({} dropped so far)",
            kMaxPending, dropped_);
}

void HeadLink::send_pending() {
  while (registered_ && connection_ && !pending_.empty()) {
    auto next = pending_.extract(pending_.begin());
    const Send& send = next.mapped();
    send(*connection_, [this, alive = alive_, number = next.key(), send](bool delivered) {
      if (*alive && !delivered && !stopped_) keep(number, send);
    });
  }
}

void HeadLink::OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent* event,
                           proto::Empty*, google::protobuf::Closure* done) {
  events_.on_event(*event);
  done->Run();
}

}  // namespace rt::node
