// One RPC connection: frames over a net::Stream. Both sides may call; a response is matched to its
// request by the number of the call.
//
// Methods and messages come from the .proto files alone: an RPC is called through its generated
// stub and served by a subclass of its generated service.
//
//   rpc::call(*conn, &proto::HeadService::Stub::KvGet, request, timeout_us,
//             [](Result<proto::KvGetReply> reply) { ... });
//   rpc::notify(*conn, &proto::HeadService::Stub::ReportResources, report);  // one-way
//
// Both functions are in client.h.
//
// Threads: those of the loop (see net/loop.h). Lifecycle: Server and connect() make connections.
// They are shared, because callbacks and ServerCalls outlive a broken connection. When a connection
// breaks, its pending calls end with kUnavailable in the order they were made, then the closed
// handler is called.
#pragma once

#include <google/protobuf/service.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/net/loop.h"
#include "common/rpc/frame.h"

namespace rt::proto {
class Hello;
class HelloReply;
}  // namespace rt::proto

namespace rt::rpc {

class Connection;

// The process at the other end, as its hello described it.
struct Peer {
  std::string role;  // One of head, node_manager, object_store, worker, driver or client.
  std::string id;    // The binary node or worker id; may be empty.
  std::string cluster_id;
  std::string job_config;  // The serialised JobConfig of an owner, or empty.
  std::string build;
  bool is_unix = false;
  std::string name;  // The name for messages: "10.0.0.2:4242" or "unix".
};

// The beginning of the error of a refused token. A program can add where its token comes from.
inline constexpr char kWrongToken[] = "the token is not the one of this cluster";

// The description of this process for hellos. Its token is also demanded of peers.
struct Identity {
  std::string role;
  std::string id;
  std::string cluster_id;  // If empty, any cluster is accepted.
  std::string token;       // If empty, none is sent, and peers need none.
  std::string job_config;
};

// The controller of a call that this process serves. It is valid until done->Run(), which deletes
// it. If the connection has closed by then, the answer is dropped.
class ServerCall : public google::protobuf::RpcController {
 public:
  virtual const std::shared_ptr<Connection>& connection() = 0;
  virtual Bytes attachment() = 0;  // Valid during the service method only.
  virtual void set_reply_attachment(OwnedBytes bytes) = 0;
  // Makes `error` the caller's result. `done` must still be run.
  virtual void fail(Error error) = 0;
};
inline ServerCall& server_call(google::protobuf::RpcController* controller) {
  return *static_cast<ServerCall*>(controller);
}

struct CallOptions {
  int64_t timeout_us = -1;  // A negative one means no limit.
  OwnedBytes attachment;
  // Memory that the response's attachment is written into directly (shared memory). Its size must
  // be exactly that of the attachment, else the call fails with kProtocol. It must stay valid until
  // the call has ended.
  MutableBytes response_target;
  bool one_way = false;
};

class Connection final : public google::protobuf::RpcChannel,
                         public net::StreamHandler,
                         public std::enable_shared_from_this<Connection> {
 public:
  using FlatHandler = std::function<void(uint32_t type, Bytes body)>;

  ~Connection() override;

  const Peer& peer() const;
  bool is_open() const;
  // Serves a generated service to the peer; `service` must outlive the connection. Several services
  // may be added.
  void add_service(google::protobuf::Service* service);
  // Called with each flat frame of the peer; `body` is valid during the call. A flat frame ends a
  // connection that has no such handler.
  void set_flat_handler(FlatHandler handler);
  // Called once when the connection has closed, for whatever reason, after the pending calls ended.
  void set_closed_handler(std::function<void(const Error&)> handler);
  // Closes at once. Pending calls end with kUnavailable, then the closed handler is called with
  // `why`.
  void close(const Error& why);

  // A flat frame is built in place, at the end of the outgoing queue. On a closed connection it is
  // dropped.
  //   std::string& out = conn.begin_flat(type); out.append(...); conn.end_flat();
  std::string& begin_flat(uint32_t type);
  void end_flat();
  void flush();
  size_t queued_bytes() const;

  // Implements google::protobuf::RpcChannel for call() and notify(). `controller` is a ClientCall;
  // null makes the call one-way.
  void CallMethod(const google::protobuf::MethodDescriptor* method,
                  google::protobuf::RpcController* controller,
                  const google::protobuf::Message* request, google::protobuf::Message* response,
                  google::protobuf::Closure* done) override;
  // `done` takes ownership of the parsed response. The attachment is valid during the callback.
  using RawDone =
      std::function<void(Result<std::unique_ptr<google::protobuf::Message>>, Bytes attachment)>;
  void call_raw(const google::protobuf::MethodDescriptor* method,
                const google::protobuf::Message& request,
                const google::protobuf::Message* response_prototype, CallOptions options,
                RawDone done);

  // net::StreamHandler
  MutableBytes read_buffer() override;
  void on_read(size_t n) override;
  void on_closed(const Error& why) override;
  void on_drained() override;

 private:
  friend class Server;
  friend class Connector;
  struct Impl;
  explicit Connection(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The process to connect to: an address and, where several processes share it, one of them.
struct Target {
  net::Address address;
  std::string name = "self";  // The target in the preamble.
  std::string id;             // The hex id if the target is "worker".
};
// Connects, sends preamble and hello, and hands out the connection once the peer's hello reply was
// accepted. `done` is called once, from the loop, never from inside connect(). Its errors
// (kUnavailable, kTimeout, kUnauthenticated, kWrongVersion, kWrongCluster and others) name the
// address and the remedy. The limit covers the whole greeting; a negative one means no limit.
void connect(net::Loop& loop, const Target& target, const Identity& me, int64_t timeout_us,
             std::function<void(Result<std::shared_ptr<Connection>>)> done);

}  // namespace rt::rpc
