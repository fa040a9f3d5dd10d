// A whole node-manager and its object store, which the test plays.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service_fixture.h"

namespace rt::node {
namespace {

// Keeps each question until the test has it answered.
class FakeStore final : public proto::ObjectStoreService {
 public:
  void GetStats(Controller*, const proto::Empty*, proto::StoreStats* reply,
                Closure* done) override {
    reply->set_pid(4711);
    open.push_back(done);
  }
  void answer() {
    for (Closure* done : std::exchange(open, {})) done->Run();
  }

  std::vector<Closure*> open;
};

class StoreLinkTest : public NodeManagerTest {
 protected:
  ~StoreLinkTest() override {
    stop_node();
    store.answer();  // A closure that was never run would leak.
  }
  void serve_store() {
    store_socket = dir.path("sockets/store");
    rpc::ServerOptions server;
    server.identity.role = "object_store";
    server.identity.token = "secret";
    server.on_connection = [this](const std::shared_ptr<rpc::Connection>& c) {
      c->add_service(&store);
    };
    store_server = std::make_unique<rpc::Server>(driver.loop(), server);
    ASSERT_TRUE(store_server->listen(net::Address::unix_socket(store_socket)));
  }

  FakeStore store;
  std::unique_ptr<rpc::Server> store_server;
};

// A driver that finds the node at the head may use its store, and is told which process hangs.
TEST_F(StoreLinkTest, ANodeJoinsOnceItsStoreHasAnswered) {
  settings.store_ping_interval_ms = settings.store_hung_after_ms = 10;
  serve_head();
  serve_store();
  start_node();
  ASSERT_TRUE(driver.run_until([&] { return !store.open.empty(); }));
  for (int turn = 0; turn < 20; ++turn) connect("driver");  // the loop goes round meanwhile
  EXPECT_TRUE(head.registrations.empty());
  const std::string hangs = "has not answered since";
  EXPECT_TRUE(driver.run_until([&] { return status.find(hangs) != std::string::npos; })) << status;

  store.answer();
  ASSERT_TRUE(driver.run_until([&] { return ready; }));
  EXPECT_TRUE(driver.run_until([&] {
    return head.report.problem().find("its object store (process 4711) " + hangs) !=
           std::string::npos;
  })) << head.report.problem();
  EXPECT_NE(status.find("(process 4711) " + hangs), std::string::npos) << status;
}

}  // namespace
}  // namespace rt::node
