// Typed calls through the generated stubs, and a blocking client for command-line tools.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "common/rpc/connection.h"

namespace rt::rpc {

// The controller that call() and notify() pass through a generated stub to
// Connection::CallMethod().
class ClientCall final : public google::protobuf::RpcController {
 public:
  CallOptions options;
  Connection::RawDone done;
  const google::protobuf::Message* response_prototype = nullptr;

  void Reset() override {}
  bool Failed() const override { return false; }
  std::string ErrorText() const override { return {}; }
  void StartCancel() override {}
  void SetFailed(const std::string&) override {}
  bool IsCanceled() const override { return false; }
  void NotifyOnCancel(google::protobuf::Closure*) override {}
};

// Takes the type of a stub's method apart into its stub, request and reply.
template <class T>
struct StubMethod;
template <class S, class Request, class Reply>
struct StubMethod<void (S::*)(google::protobuf::RpcController*, const Request*, Reply*,
                              google::protobuf::Closure*)> {
  using Stub = S;
  using RequestType = Request;
  using ReplyType = Reply;
};

// Sends a request. `done(Result<Reply>)` or `done(Result<Reply>, Bytes attachment)` is called once,
// from the loop, never from inside call(). A closed connection (kUnavailable), a time-out and the
// peer's errors all arrive there. The reply's attachment is valid during the callback.
template <class Method, class Done>
void call(Connection& connection, Method method,
          const typename StubMethod<Method>::RequestType& request, CallOptions options, Done done) {
  using Reply = typename StubMethod<Method>::ReplyType;
  typename StubMethod<Method>::Stub stub(&connection);
  ClientCall call;
  call.options = std::move(options);
  call.response_prototype = &Reply::default_instance();
  call.done = [done = std::move(done)](Result<std::unique_ptr<google::protobuf::Message>> message,
                                       Bytes attachment) mutable {
    Result<Reply> reply = Error{};
    if (message) {
      reply = std::move(static_cast<Reply&>(**message));
    } else {
      reply = std::move(message).error();
    }
    if constexpr (std::is_invocable_v<Done&, Result<Reply>, Bytes>) {
      done(std::move(reply), attachment);
    } else {
      done(std::move(reply));
    }
  };
  (stub.*method)(&call, &request, nullptr, nullptr);
}

template <class Method, class Done>
void call(Connection& connection, Method method,
          const typename StubMethod<Method>::RequestType& request, int64_t timeout_us, Done done) {
  CallOptions options;
  options.timeout_us = timeout_us;
  call(connection, method, request, std::move(options), std::move(done));
}

// Sends a one-way request: the peer does not answer. When it cannot be sent it is lost, with a
// warning in the log unless the connection is closed.
template <class Method>
void notify(Connection& connection, Method method,
            const typename StubMethod<Method>::RequestType& request, OwnedBytes attachment = {}) {
  typename StubMethod<Method>::Stub stub(&connection);
  ClientCall call;
  call.options.one_way = true;
  call.options.attachment = std::move(attachment);
  (stub.*method)(&call, &request, nullptr, nullptr);
}

// A call whose thread runs the loop itself until the answer is there. For each method it compiles
// to much less code than call(). It must live until answered() is true.
//   WaitedCall waited(timeout_us); waited.send(connection, method, request);
//   run the loop until waited.answered(); return waited.take<Reply>();
class WaitedCall {
 public:
  explicit WaitedCall(int64_t timeout_us);
  WaitedCall(const WaitedCall&) = delete;

  // Sends the request; to be called exactly once.
  template <class Method>
  void send(Connection& connection, Method method,
            const typename StubMethod<Method>::RequestType& request) {
    call_.response_prototype = &StubMethod<Method>::ReplyType::default_instance();
    typename StubMethod<Method>::Stub stub(&connection);
    (stub.*method)(&call_, &request, nullptr, nullptr);
  }
  const bool& answered() const { return answered_; }
  // Returns the answer, once it is there. `Reply` must be that of the method.
  template <class Reply>
  Result<Reply> take() {
    if (!answer_) return std::move(answer_).error();
    return std::move(static_cast<Reply&>(**answer_));
  }

 private:
  ClientCall call_;
  bool answered_ = false;
  Result<std::unique_ptr<google::protobuf::Message>> answer_;
};

// A connection for one thread that waits for each answer: for rayctl, tests and start-up code.
class SyncClient {
 public:
  // Blocks until the hello was accepted; fails like rpc::connect().
  static Result<std::unique_ptr<SyncClient>> connect(const Target& target, const Identity& me,
                                                     int64_t timeout_us);
  ~SyncClient();

  template <class Method>
  Result<typename StubMethod<Method>::ReplyType> call(
      Method method, const typename StubMethod<Method>::RequestType& request,
      int64_t timeout_us = 30'000'000) {
    WaitedCall waited(timeout_us);
    waited.send(*connection(), method, request);
    run_until(waited.answered());
    return waited.take<typename StubMethod<Method>::ReplyType>();
  }
  const std::shared_ptr<Connection>& connection();
  // Runs the loop until `flag` is true or `timeout_us` has passed (-1: no limit), and returns the
  // flag. Used to wait for messages that the peer pushes.
  bool run_until(const bool& flag, int64_t timeout_us = -1);

 private:
  struct Impl;
  explicit SyncClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rt::rpc
