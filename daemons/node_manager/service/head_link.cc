#include "daemons/node_manager/service/head_link.h"

#include "common/base/clock.h"
#include "common/base/log.h"

namespace rt::node {

HeadLink::HeadLink(net::Loop& loop, const Settings& settings, net::Address head, bool is_head_node,
                   rpc::Identity me, Events events)
    : loop_(loop),
      settings_(settings),
      head_(std::move(head)),
      me_(std::move(me)),
      events_(std::move(events)),
      session_(settings, head_.to_string(), is_head_node),
      queue_([](int64_t dropped) {
        if (dropped % 1000 == 1)
          RT_WARN(
              "more than {} requests wait for the head: the oldest is dropped ({} dropped so far)",
              HeadQueue::kMostWaiting, dropped);
      }),
      alarm_(loop, [this] { act(session_.tick(system_now())); }) {}

HeadLink::~HeadLink() {
  *alive_ = false;
  if (connection_) {
    connection_->set_closed_handler(nullptr);
    connection_->close(make_error(Code::kUnavailable, "the node-manager ends"));
  }
}

void HeadLink::start(google::protobuf::Service* served) {
  served_ = served;
  act(session_.start(system_now()));
}

void HeadLink::stop() {
  session_.stop();
  alarm_.clear();
}

void HeadLink::act(const HeadSession::Turn& turn) {
  if (turn.give_up) return events_.on_fatal(*turn.give_up);
  if (turn.close) connection_->close(*turn.close);
  if (turn.connect) attempt();
  alarm_.ring_by(session_.next_tick_us());
}

void HeadLink::attempt() {
  rpc::Target target;
  target.address = head_;
  rpc::connect(loop_, target, me_, settings_.connect_timeout_ms * 1000,
               [this, alive = alive_](Result<std::shared_ptr<rpc::Connection>> result) {
                 if (!*alive || session_.is_stopped()) return;
                 if (result) {
                   connected(std::move(*result));
                 } else {
                   act(session_.failed(result.error(), system_now()));
                 }
               });
}

void HeadLink::connected(std::shared_ptr<rpc::Connection> connection) {
  connection_ = std::move(connection);
  connection_->add_service(served_);
  connection_->add_service(this);
  connection_->set_closed_handler([this](const Error& why) { lost(why); });
  proto::RegisterNodeRequest request;
  events_.fill_registration(&request);
  queue_.registering();
  rpc::call(
      *connection_, &proto::HeadService::Stub::RegisterNode, request,
      settings_.connect_timeout_ms * 1000,
      [this, alive = alive_, current = connection_.get()](Result<proto::RegisterNodeReply> reply) {
        if (!*alive || session_.is_stopped() || connection_.get() != current) return;
        if (!reply) return act(session_.refused(reply.error()));
        session_.registered();
        if (me_.cluster_id.empty()) me_.cluster_id = reply->cluster_id();
        events_.on_registered(*reply);
        // After the reports of state, which on_registered makes.
        if (session_.is_registered()) queue_.open();
      });
}

void HeadLink::lost(const Error& why) {
  connection_.reset();
  queue_.close();
  if (session_.lost(system_now()) && !session_.is_stopped()) {
    RT_WARN("connection to the head at {} lost: {}", head_.to_string(), why.message);
    if (events_.on_lost) events_.on_lost(why);
  }
  if (session_.is_stopped()) return;
  // Posted, because this runs inside a callback of the connection that closes.
  loop_.post([this, why, alive = alive_] {
    if (*alive) act(session_.failed(why, system_now()));
  });
}

void HeadLink::OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent* event,
                           proto::Empty*, google::protobuf::Closure* done) {
  events_.on_event(*event);
  done->Run();
}

}  // namespace rt::node
