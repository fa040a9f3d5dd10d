// The order and the bound of the requests that the link to the head repeats.
#include <gtest/gtest.h>

#include "common/proto/node_manager.pb.h"
#include "common/rpc/server.h"
#include "daemons/node_manager/service/head_link.h"
#include "process_fixture.h"

namespace rt::node {
namespace {

// A head that, while `busy`, does not answer ReportActorStarted and refuses ReportActorDied.
class HesitantHead final : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;

  void RegisterNode(Controller* call, const proto::RegisterNodeRequest*, proto::RegisterNodeReply*,
                    Closure* done) override {
    node = rpc::server_call(call).connection();
    done->Run();
  }
  void ReportActorStarted(Controller*, const proto::ActorStarted*, proto::Empty*,
                          Closure* done) override {
    if (busy) {
      unanswered.push_back(done);
      return;
    }
    reports.push_back("started");
    done->Run();
  }
  void ReportActorDied(Controller* call, const proto::ActorDied* death, proto::Empty*,
                       Closure* done) override {
    if (busy) {
      ++refusals;
      rpc::server_call(call).fail(make_error(Code::kUnavailable, "ask later"));
    } else {
      reports.push_back("died");
      epochs.push_back(death->epoch());
    }
    done->Run();
  }

  bool busy = false;
  int refusals = 0;
  std::shared_ptr<rpc::Connection> node;
  std::vector<std::string> reports;
  std::vector<int64_t> epochs;
  std::vector<Closure*> unanswered;
};

class HeadLinkTest : public testing::Test {
 protected:
  HeadLinkTest() {
    settings.connect_timeout_ms = 60'000;
    rpc::ServerOptions options;
    options.identity.role = "head";
    options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
      connection->add_service(&head);
    };
    server = std::make_unique<rpc::Server>(driver.loop(), options);
    RT_CHECK(server->listen(net::Address::tcp("127.0.0.1", 0)));
    rpc::Identity me;
    me.role = "node_manager";
    link = std::make_unique<HeadLink>(
        driver.loop(), settings, net::Address::tcp("127.0.0.1", server->port()), false, me,
        HeadLink::Events{.fill_registration = [](proto::RegisterNodeRequest*) {},
                         .on_registered = [this](const proto::RegisterNodeReply&) { ++registered; },
                         .on_event = [](const proto::HeadEvent&) {},
                         .on_fatal = [](const Error& why) { ADD_FAILURE() << why.message; }});
  }
  ~HeadLinkTest() override {
    for (google::protobuf::Closure* done : head.unanswered) done->Run();
  }
  void report_death(int64_t epoch) {
    proto::ActorDied died;
    died.set_epoch(epoch);
    link->send_reliably(&proto::HeadService::Stub::ReportActorDied, died);
  }

  struct NoMethods final : proto::NodeManagerService {};

  AsioDriver driver;
  Settings settings;
  HesitantHead head;
  NoMethods served;
  std::unique_ptr<rpc::Server> server;
  std::unique_ptr<HeadLink> link;
  int registered = 0;
};

TEST_F(HeadLinkTest, RepeatedRequestsKeepTheirOrder) {
  link->start(&served);
  ASSERT_TRUE(driver.run_until([&] { return registered == 1; }));
  head.busy = true;
  link->send_reliably(&proto::HeadService::Stub::ReportActorStarted, proto::ActorStarted());
  report_death(1);
  ASSERT_TRUE(driver.run_until([&] { return head.refusals == 1 && !head.unanswered.empty(); }));
  // The refused request waits again before the break makes the unanswered one wait again, too.
  head.busy = false;
  head.node->close(make_error(Code::kUnavailable, "the connection breaks"));
  ASSERT_TRUE(driver.run_until([&] { return head.reports.size() == 2; }));
  EXPECT_EQ(head.reports, (std::vector<std::string>{"started", "died"}));
}

TEST_F(HeadLinkTest, OfTooManyWaitingRequestsTheOldestIsDropped) {
  constexpr int64_t kMaxReports = 10'000;
  for (int64_t epoch = 1; epoch <= kMaxReports + 1; ++epoch) report_death(epoch);
  link->start(&served);
  ASSERT_TRUE(driver.run_until([&] { return head.epochs.size() == kMaxReports; }));
  EXPECT_EQ(head.epochs.front(), 2);
  EXPECT_EQ(head.epochs.back(), kMaxReports + 1);
}

}  // namespace
}  // namespace rt::node
