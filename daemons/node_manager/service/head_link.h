// The node's connection to the head: registers, comes back after a break, gives up after
// head_reconnect_timeout_ms (at the first start: connect_timeout_ms) or at once where trying again
// cannot help (wrong token, cluster, version).
//
// What the head must learn is kept while it is away and sent once the node is registered again;
// reports of state are not: the registration carries it. Threads: the loop's. Outlives nothing:
// destroyed before the loop.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "common/config/settings.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"

namespace rt::node {

class HeadLink final : public proto::HeadClientService {
 public:
  struct Events {
    std::function<void(proto::RegisterNodeRequest*)> fill_registration;
    std::function<void(const proto::RegisterNodeReply&)> on_registered;  // each time
    std::function<void(const proto::HeadEvent&)> on_event;
    std::function<void(const Error&)> on_lost = {};  // of one it was registered at
    std::function<void(const Error&)> on_fatal;      // once: the node cannot be part of the cluster
  };

  // `served` (NodeManagerService) is offered to the head; it outlives the link.
  HeadLink(net::Loop& loop, const Settings& settings, net::Address head, rpc::Identity me,
           google::protobuf::Service* served, Events events);
  ~HeadLink() override;

  void start();
  void stop();  // no more attempts; the connection stays for farewells
  // Null while not registered.
  rpc::Connection* connection() const { return registered_ ? connection_.get() : nullptr; }
  const net::Address& address() const { return head_; }

  // Sent now, or when the head is back; again if the connection breaks before the answer.
  template <class Method>
  void send_reliably(Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
    enqueue([this, method, request](rpc::Connection& connection, std::function<void(bool)> done) {
      using Reply = typename rpc::StubMethod<Method>::ReplyType;
      rpc::call(connection, method, request, kCallTimeoutUs, [done](Result<Reply> reply) {
        // An answer that is an error is an answer.
        done(reply.has_value() || !is_away(reply.error().code));
      });
    });
  }
  // Dropped while the head is away.
  template <class Method>
  bool send_oneway(Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
    if (rpc::Connection* open = connection()) {
      rpc::notify(*open, method, request);
      return true;
    }
    return false;
  }

  // proto::HeadClientService
  void OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent* event, proto::Empty*,
                   google::protobuf::Closure* done) override;

 private:
  static constexpr int64_t kCallTimeoutUs = 30'000'000;
  using Send = std::function<void(rpc::Connection&, std::function<void(bool delivered)>)>;

  void enqueue(Send send);
  void send_pending();
  void attempt();
  void retry_or_give_up(const Error& why);
  void connected(std::shared_ptr<rpc::Connection> connection);
  void lost(const Error& why);

  net::Loop& loop_;
  const Settings& settings_;
  net::Address head_;
  rpc::Identity me_;
  google::protobuf::Service* served_;
  Events events_;
  std::shared_ptr<rpc::Connection> connection_;
  std::deque<Send> pending_;
  bool registered_ = false, ever_registered_ = false, stopped_ = false;
  int64_t lost_us_ = 0;  // since when there is no head
  int64_t pause_us_ = 0;
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
