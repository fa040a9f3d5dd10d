// One RPC connection: frames over a net::Stream, requests and responses matched, both sides may
// call.
//
// Methods and messages come from the .proto files alone: an RPC is called through its generated
// stub and served by a subclass of its generated service.
//
//   rpc::call(*conn, &proto::HeadService::Stub::KvGet, request, timeout_us,
//   [](Result<proto::KvGetReply> reply) {...}); rpc::notify(*conn,
//   &proto::HeadService::Stub::ReportResources, report);      // one-way; both in client.h
//
// Threads: those of the loop (see net/loop.h). Lifecycle: made by Server or connect(), shared
// because callbacks and server contexts outlive a broken connection; when it breaks every pending
// call ends with kUnavailable, in order, then on_closed.
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

// Who is at the other end, as its hello said.
struct Peer {
  std::string role;  // head node_manager object_store worker driver client
  std::string id;    // binary node or worker id, may be empty
  std::string cluster_id;
  std::string job_config;  // serialised JobConfig of an owner, or empty
  std::string build;
  bool is_unix = false;
  std::string name;  // for messages: "10.0.0.2:4242", "unix"
};

// What this process says of itself in hellos, and demands of others.
struct Identity {
  std::string role;
  std::string id;
  std::string cluster_id;  // empty: accept and adopt the server's
  std::string token;       // empty: no authentication demanded
  std::string job_config;
};

// The controller of a call being served. Valid until done->Run(); the connection may be gone by
// then (nothing is sent).
class ServerCall : public google::protobuf::RpcController {
 public:
  virtual const std::shared_ptr<Connection>& connection() = 0;
  virtual Bytes attachment() = 0;  // valid during the service method only
  virtual void set_reply_attachment(OwnedBytes bytes) = 0;
  virtual void fail(Error error) = 0;  // the caller's Result holds it; then run `done`
};
inline ServerCall& server_call(google::protobuf::RpcController* controller) {
  return *static_cast<ServerCall*>(controller);
}

struct CallOptions {
  int64_t timeout_us = -1;
  OwnedBytes attachment;
  // Where the response's attachment shall be written directly (shared memory); must have exactly
  // its size, else the call fails.
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
  // Serves this generated service to the peer; it outlives the connection. Several may be added.
  void add_service(google::protobuf::Service* service);
  void set_flat_handler(FlatHandler handler);
  void set_closed_handler(std::function<void(const Error&)> handler);
  void set_drained_handler(std::function<void()> handler);
  // Closes now. Pending calls end with kUnavailable; the closed handler is called with `why`.
  void close(const Error& why);

  // Flat frames: build the body in place, at the end of the outgoing queue.
  //   std::string& out = conn.begin_flat(type); out.append(...); conn.end_flat();
  std::string& begin_flat(uint32_t type);
  void end_flat();
  void flush();
  size_t queued_bytes() const;

  // Used by call() and notify(); google::protobuf::RpcChannel. `controller` is null or a
  // ClientCall.
  void CallMethod(const google::protobuf::MethodDescriptor* method,
                  google::protobuf::RpcController* controller,
                  const google::protobuf::Message* request, google::protobuf::Message* response,
                  google::protobuf::Closure* done) override;
  // `done` gets ownership of the parsed response; the Bytes are its attachment, valid during the
  // callback.
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

// Connects, sends preamble and hello, and hands out the connection once the peer's hello reply was
// accepted. Errors: kUnavailable, kTimeout, kUnauthenticated, kWrongVersion, kWrongCluster - each
// names the address and the remedy.
struct Target {
  net::Address address;
  std::string name = "self";  // preamble target
  std::string id;             // hex id for "worker"
};
void connect(net::Loop& loop, const Target& target, const Identity& me, int64_t timeout_us,
             std::function<void(Result<std::shared_ptr<Connection>>)> done);

}  // namespace rt::rpc
