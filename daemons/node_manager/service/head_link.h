// The node's connection to the head. It registers the node and registers it again after the
// connection broke, until core/head_session.h gives up.
//
// Events that the head must not miss are queued while it is away and sent once the node is
// registered again (core/head_queue.h). Reports of state are not queued, because the registration
// carries the state. Threads: the loop's. To be destroyed before the loop.
#pragma once

#include <functional>
#include <memory>

#include "common/config/settings.h"
#include "common/net/alarm.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/core/head_queue.h"
#include "daemons/node_manager/core/head_session.h"

namespace rt::node {

class HeadLink final : public proto::HeadClientService {
 public:
  struct Events {
    std::function<void(proto::RegisterNodeRequest*)> fill_registration;
    std::function<void(const proto::RegisterNodeReply&)> on_registered;  // after each registration
    std::function<void(const proto::HeadEvent&)> on_event;
    std::function<void(const Error&)> on_lost = {};  // only if the node was registered
    std::function<void(const Error&)> on_fatal;      // once: the link has given up
  };

  HeadLink(net::Loop& loop, const Settings& settings, net::Address head, bool is_head_node,
           rpc::Identity me, Events events);
  ~HeadLink() override;

  // `served` (NodeManagerService) is the service that the head may call; it is called only
  // while the loop runs.
  void start(google::protobuf::Service* served);
  // Ends all attempts to connect. An open connection stays, so that UnregisterNode can be sent.
  void stop();
  // Null while not registered.
  rpc::Connection* connection() const {
    return session_.is_registered() ? connection_.get() : nullptr;
  }

  // Sends the request now, or when the node is registered again, and repeats it if the connection
  // breaks before the reply. The head may therefore see it twice. Requests that wait are sent in
  // the order of the calls. Bounded by HeadQueue::kMostWaiting, with a warning in the log.
  template <class Method>
  void send_reliably(Method method, const typename rpc::StubMethod<Method>::RequestType& request,
                     HeadQueue::Until until = HeadQueue::Until::kDelivered) {
    auto send = [this, method, request](HeadQueue::Done done) {
      using Reply = typename rpc::StubMethod<Method>::ReplyType;
      rpc::call(*connection_, method, request, kCallTimeoutUs, [done](Result<Reply> reply) {
        // A reply that is an error of the head's own counts as delivered.
        done(reply.has_value() || !may_recover(reply.error().code));
      });
    };
    queue_.add(std::move(send), until);
  }
  // Sends the request without a reply. Returns false, and drops it, while the head is away.
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

  void act(const HeadSession::Turn& turn);
  void attempt();
  void connected(std::shared_ptr<rpc::Connection> connection);
  void lost(const Error& why);

  net::Loop& loop_;
  const Settings& settings_;
  net::Address head_;
  rpc::Identity me_;
  google::protobuf::Service* served_ = nullptr;
  Events events_;
  std::shared_ptr<rpc::Connection> connection_;
  HeadSession session_;
  HeadQueue queue_;
  net::Alarm alarm_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
