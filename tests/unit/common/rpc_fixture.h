// A server with the echo service and clients of it, all on one loop in the test's thread. Tests
// run with either kind of loop.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "echo.pb.h"
#include "tests/unit/common/loop_driver.h"

namespace rt::test {

using Controller = google::protobuf::RpcController;
using Closure = google::protobuf::Closure;

// The methods are described in echo.proto. Calls of Hold wait in `held` until the test runs their
// `done`.
class EchoServer final : public EchoService {
 public:
  struct Held {
    Text* response;
    Closure* done;
  };

  void Echo(Controller* controller, const Text* request, Text* response, Closure* done) override;
  void Fail(Controller* controller, const Text* request, Text*, Closure* done) override {
    rpc::server_call(controller).fail(make_error(Code::kNotFound, request->text()));
    done->Run();
  }
  void Hold(Controller*, const Text*, Text* response, Closure* done) override {
    held.push_back({response, done});
  }
  void Note(Controller*, const Text* request, Text*, Closure* done) override {
    notes.push_back(request->text());
    done->Run();
  }
  void Block(Controller* controller, const Text* request, Text* response, Closure* done) override;

  std::deque<Held> held;
  std::vector<std::string> notes;
};

class RpcTest : public ::testing::TestWithParam<LoopKind> {
 protected:
  RpcTest();
  ~RpcTest() override;

  // (Re)starts the server on TCP and on a Unix socket.
  void serve(rpc::ServerOptions options);
  rpc::Target tcp_target() const {
    return {net::Address::tcp("127.0.0.1", server->port()), "self", ""};
  }
  rpc::Target unix_target() const { return {net::Address::unix_socket(socket_path()), "self", ""}; }
  std::string socket_path() const { return dir.path("server"); }

  Result<std::shared_ptr<rpc::Connection>> try_connect(const rpc::Target& target,
                                                       const rpc::Identity& me,
                                                       int64_t timeout_us = 60'000'000);
  std::shared_ptr<rpc::Connection> connect(const rpc::Target& target);

  // Makes one call and turns the loop until it is answered. `attachment` receives that of the
  // reply.
  template <class Method>
  Result<Text> call(rpc::Connection& connection, Method method, const Text& request,
                    rpc::CallOptions options = {}, std::string* attachment = nullptr) {
    Result<Text> result = make_error(Code::kInternal, "no answer");
    bool answered = false;
    rpc::call(connection, method, request, std::move(options),
              [&](Result<Text> reply, Bytes bytes) {
                result = std::move(reply);
                if (attachment != nullptr) *attachment = std::string(as_view(bytes));
                answered = true;
              });
    EXPECT_FALSE(answered) << "done was called from inside call()";
    EXPECT_TRUE(driver.run_until([&] { return answered; }));
    return result;
  }
  // Expects that the server still answers a new client.
  void expect_alive();

  LoopDriver driver;
  net::Loop& loop;
  TempDir dir;
  EchoServer echo;  // The service that every connection of `server` offers.
  rpc::ServerOptions options;
  std::unique_ptr<rpc::Server> server;
  std::vector<std::shared_ptr<rpc::Connection>> peers;  // The server's side of each connection.
};

inline Text text(const std::string& t, int64_t number = 0) {
  Text message;
  message.set_text(t);
  message.set_number(number);
  return message;
}

inline OwnedBytes owned(std::string bytes) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  return {as_bytes(*kept), kept};
}

}  // namespace rt::test
