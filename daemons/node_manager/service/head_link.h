// The node's connection to the head. It registers the node and registers it again after the
// connection broke. It gives up when the head cannot be reached for head_reconnect_timeout_ms
// (connect_timeout_ms before the first registration), and at once when another attempt cannot help
// (wrong token, cluster or version).
//
// Events that the head must not miss are queued while it is away and sent once the node is
// registered again (send_reliably()). Reports of state are not queued, because the registration
// carries the state. Threads: the loop's. To be destroyed before the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "common/config/settings.h"
#include "common/proto/head.pb.h"
#include "common/rpc/client.h"

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

  // `served` (NodeManagerService) is the service that the head may call; it must outlive the link.
  HeadLink(net::Loop& loop, const Settings& settings, net::Address head, rpc::Identity me,
           google::protobuf::Service* served, Events events);
  ~HeadLink() override;

  void start();
  // Ends all attempts to connect. An open connection stays, so that UnregisterNode can be sent.
  void stop();
  // Null while not registered.
  rpc::Connection* connection() const { return registered_ ? connection_.get() : nullptr; }
  const net::Address& address() const { return head_; }

  // Sends the request now, or when the node is registered again, and repeats it if the connection
  // breaks before the reply. The head may therefore see it twice. Requests that wait are sent in
  // the order of the calls. Bounded: beyond 10,000 waiting requests the oldest is dropped, with a
  // warning in the log.
  template <class Method>
  void send_reliably(Method method, const typename rpc::StubMethod<Method>::RequestType& request) {
    enqueue([this, method, request](rpc::Connection& connection, std::function<void(bool)> done) {
      using Reply = typename rpc::StubMethod<Method>::ReplyType;
      rpc::call(connection, method, request, kCallTimeoutUs, [done](Result<Reply> reply) {
        // A reply that is an error of the head's own counts as delivered.
        done(reply.has_value() || !may_recover(reply.error().code));
      });
    });
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
  using Send = std::function<void(rpc::Connection&, std::function<void(bool delivered)>)>;

  void enqueue(Send send);
  // Adds a request to those that wait, or drops the oldest of them.
  void keep(uint64_t number, Send send);
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
  // The requests that wait, by number: a request that was not delivered takes its old place.
  std::map<uint64_t, Send> pending_;
  uint64_t last_number_ = 0;
  int64_t dropped_ = 0;
  bool registered_ = false, ever_registered_ = false, stopped_ = false;
  int64_t lost_us_ = 0;   // when the head was lost, or start()
  int64_t pause_us_ = 0;  // current back-off between attempts
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
