// RpcTest and EchoServer of rpc_fixture.h.
#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {

void EchoServer::Echo(Controller* controller, const Text* request, Text* response, Closure* done) {
  *response = *request;
  rpc::ServerCall& call = rpc::server_call(controller);
  call.set_reply_attachment(owned(std::string(as_view(call.attachment()))));
  done->Run();
}

void EchoServer::Block(Controller* controller, const Text* request, Text* response, Closure* done) {
  std::string block(static_cast<size_t>(request->number()), 'b');
  for (size_t i = 0; i < block.size(); i += 1009) block[i] = static_cast<char>(i);
  rpc::server_call(controller).set_reply_attachment(owned(std::move(block)));
  response->set_text("block");
  done->Run();
}

RpcTest::RpcTest() : driver(GetParam()), loop(driver.loop()) {
  options.identity = {"head", "head-id", "cluster-1", "secret", ""};
  options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
    connection->add_service(&echo);
    peers.push_back(connection);
  };
  serve(options);
}

RpcTest::~RpcTest() {
  for (auto& held : echo.held) held.done->Run();
  server.reset();
}

void RpcTest::serve(rpc::ServerOptions with) {
  peers.clear();
  server.reset();
  server = std::make_unique<rpc::Server>(loop, std::move(with));
  EXPECT_TRUE(server->listen(net::Address::tcp("127.0.0.1", 0)));
  EXPECT_TRUE(server->listen(net::Address::unix_socket(socket_path())));
}

Result<std::shared_ptr<rpc::Connection>> RpcTest::try_connect(const rpc::Target& target,
                                                              const rpc::Identity& me,
                                                              int64_t timeout_us) {
  Result<std::shared_ptr<rpc::Connection>> result = make_error(Code::kInternal, "no outcome");
  bool finished = false;
  rpc::connect(loop, target, me, timeout_us, [&](Result<std::shared_ptr<rpc::Connection>> outcome) {
    result = std::move(outcome);
    finished = true;
  });
  EXPECT_FALSE(finished) << "done was called from inside connect()";
  EXPECT_TRUE(driver.run_until([&] { return finished; }));
  return result;
}

std::shared_ptr<rpc::Connection> RpcTest::connect(const rpc::Target& target) {
  auto connection = try_connect(target, {"driver", "driver-id", "", "secret", "job"});
  EXPECT_TRUE(connection) << connection.error().message;
  if (!connection) return nullptr;
  return *connection;
}

void RpcTest::expect_alive() {
  auto connection = connect(tcp_target());
  ASSERT_TRUE(connection);
  auto reply = call(*connection, &EchoService::Stub::Echo, text("alive?", 42));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->number(), 42);
}

}  // namespace rt::test
