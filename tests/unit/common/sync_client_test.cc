// The blocking RPC client.
#include <thread>

#include "tests/unit/common/free_port.h"
#include "tests/unit/common/rpc_fixture.h"

namespace rt::test {
namespace {

using Stub = EchoService::Stub;

// The server runs in a thread of its own because the client blocks the test's thread.
TEST(SyncClient, CallsAndWaits) {
  net::AsioLoop loop;
  EchoServer echo;
  auto server = std::make_unique<rpc::Server>(
      loop, rpc::ServerOptions{.identity = {"head", "", "c", "", ""},
                               .on_connection = [&](const std::shared_ptr<rpc::Connection>& c) {
                                 c->add_service(&echo);
                               }});
  // Nobody else takes the port when the server is gone.
  ASSERT_TRUE(server->listen(net::Address::tcp("127.0.0.1", free_port())));
  rpc::Target target{net::Address::tcp("127.0.0.1", server->port()), "self", ""};
  std::thread thread([&] { loop.run(); });
  {
    auto client = rpc::SyncClient::connect(target, {"client", "", "", "", ""}, 60'000'000);
    ASSERT_TRUE(client) << client.error().message;
    for (int i = 0; i < 100; ++i) {
      auto reply = (*client)->call(&Stub::Echo, text("n", i));
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->number(), i);
    }
    EXPECT_EQ((*client)->call(&Stub::Fail, text("why")).error().message, "why");
    EXPECT_EQ((*client)->call(&Stub::Hold, text(""), 10'000).error().code, Code::kTimeout);
    bool never = false;
    EXPECT_FALSE((*client)->run_until(never, 1000));
  }
  loop.post([&] {
    for (auto& held : echo.held) held.done->Run();
    server.reset();
    loop.stop();
  });
  thread.join();
  auto refused = rpc::SyncClient::connect(target, {"client", "", "", "", ""}, 60'000'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace rt::test
