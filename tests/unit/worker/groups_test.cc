// Placement groups of the worker library over sockets: a driver and two workers, with a
// node-manager and a head that the test plays.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <thread>

#include "common/net/asio_loop.h"
#include "common/proto/head.pb.h"
#include "tests/support/worker_pair.h"
#include "worker/core/value_codec.h"
#include "worker/placement_groups.h"

namespace rt::test {
namespace {

using worker::Waited;

// Answers drivers as a head does. The requests are kept, and the test says what becomes of groups.
// Its methods run in the thread of its own loop, except those for the test.
class FakeHead final : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;

  explicit FakeHead(int port = 0) {
    rpc::ServerOptions options;
    options.identity.role = "head";
    options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
      connection->add_service(this);
      connection->set_closed_handler([](const Error&) {});
    };
    server_ = std::make_unique<rpc::Server>(loop_, std::move(options));
    RT_CHECK(server_->listen(net::Address::tcp("127.0.0.1", port)));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FakeHead() override {
    loop_.stop();
    thread_.join();
    server_.reset();
  }
  int port() const { return server_->port(); }

  void RegisterGroup(Controller* controller, const proto::RegisterGroupRequest* request,
                     proto::Empty*, Closure* done) override {
    auto& call = rpc::server_call(controller);
    std::lock_guard lock(mutex_);
    const proto::GroupSpec& spec = request->spec();
    if (spec.name() == "taken") {
      call.fail(make_error(Code::kAlreadyExists, "the name 'taken' is taken"));
    } else if (spec.bundles().empty()) {
      call.fail(make_error(Code::kInvalid, "a placement group needs a bundle or more"));
    } else {
      registered_.push_back(spec);
      subscribers_[spec.group_id()] = call.connection();
    }
    done->Run();
    changed_.notify_all();
  }
  void Subscribe(Controller* controller, const proto::SubscribeRequest* request, proto::Empty*,
                 Closure* done) override {
    std::lock_guard lock(mutex_);
    for (const std::string& id : request->group_ids()) {
      subscribers_[id] = rpc::server_call(controller).connection();
      if (known_.contains(id)) tell(known_[id]);
    }
    done->Run();
    changed_.notify_all();
  }
  void RemoveGroup(Controller*, const proto::GroupRequest* request, proto::Empty*,
                   Closure* done) override {
    std::lock_guard lock(mutex_);
    removed_.push_back(request->group_id());
    done->Run();
    changed_.notify_all();
  }
  void GetGroup(Controller*, const proto::GetGroupRequest* request, proto::GetGroupReply* reply,
                Closure* done) override {
    std::lock_guard lock(mutex_);
    for (const auto& [id, info] : known_) {
      if (id != request->group_id() &&
          (request->name().empty() || info.spec().name() != request->name() ||
           info.spec().ray_namespace() != request->ray_namespace()))
        continue;
      reply->set_found(true);
      *reply->mutable_group() = info;
    }
    done->Run();
  }

  // ---- what the test calls

  // The group gets this state, and its subscriber hears of it.
  void decide(const GroupId& id, proto::GroupState state, const std::string& name = "") {
    std::lock_guard lock(mutex_);
    proto::GroupInfo& info = known_[id.binary()];
    info.mutable_spec()->set_group_id(id.binary());
    info.mutable_spec()->set_name(name);
    info.mutable_spec()->set_ray_namespace("test");
    info.set_state(state);
    info.set_version(++version_);
    loop_.post([this, info] {
      std::lock_guard lock(mutex_);
      tell(info);
    });
  }
  proto::GroupSpec wait_for_registration(size_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return registered_.size() >= number; });
    return registered_[number - 1];
  }
  size_t registrations() {
    std::lock_guard lock(mutex_);
    return registered_.size();
  }
  void wait_for_removal(const GroupId& id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return std::find(removed_.begin(), removed_.end(), id.binary()) != removed_.end();
    });
  }
  void wait_for_subscription(const GroupId& id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return subscribers_.contains(id.binary()); });
  }

 private:
  void tell(const proto::GroupInfo& info) {
    auto subscriber = subscribers_.find(info.spec().group_id());
    if (subscriber == subscribers_.end() || !subscriber->second->is_open()) return;
    proto::HeadEvent event;
    *event.add_groups() = info;
    rpc::notify(*subscriber->second, &proto::HeadClientService::Stub::OnHeadEvent, event);
    subscriber->second->flush();
  }

  net::AsioLoop loop_;
  std::unique_ptr<rpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<proto::GroupSpec> registered_;
  std::vector<std::string> removed_;
  std::map<std::string, proto::GroupInfo> known_;
  std::map<std::string, std::shared_ptr<rpc::Connection>> subscribers_;
  int64_t version_ = 0;
  std::thread thread_;
};

// A node-manager that registers a driver and names the head to it.
class FakeNode final : public proto::NodeManagerService {
 public:
  FakeNode(const std::string& directory, int head_port)
      : socket_(directory + "/raylet"), head_port_(head_port) {
    rpc::ServerOptions options;
    options.identity.role = "node_manager";
    options.on_connection = [this](const std::shared_ptr<rpc::Connection>& connection) {
      connection->add_service(this);
      connection->set_closed_handler([](const Error&) {});
    };
    server_ = std::make_unique<rpc::Server>(loop_, std::move(options));
    RT_CHECK(server_->listen(net::Address::unix_socket(socket_)));
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FakeNode() override {
    loop_.stop();
    thread_.join();
    server_.reset();
  }
  const std::string& socket() const { return socket_; }
  void RegisterWorker(google::protobuf::RpcController*, const proto::RegisterWorkerRequest*,
                      proto::RegisterWorkerReply* reply, google::protobuf::Closure* done) override {
    reply->set_node_id(std::string(28, 'n'));
    reply->set_job_id(job_id_from_int(5).binary());
    reply->set_ray_namespace("test");
    reply->set_ip("127.0.0.1");
    reply->set_head_address("127.0.0.1:" + std::to_string(head_port_));
    done->Run();
  }
  void SetLeaseDemand(google::protobuf::RpcController*, const proto::LeaseDemand* request,
                      proto::Empty*, google::protobuf::Closure* done) override {
    std::lock_guard lock(mutex_);
    demands_.push_back(*request);
    done->Run();
    changed_.notify_all();
  }
  // For the test: the first demand that is for the group, or for none if `id` is nil.
  proto::LeaseDemand wait_for_demand(const GroupId& id) {
    std::unique_lock lock(mutex_);
    const proto::LeaseDemand* found = nullptr;
    changed_.wait(lock, [&] {
      for (const auto& demand : demands_) {
        if (demand.group_id() == id.view()) found = &demand;
      }
      return found != nullptr;
    });
    return *found;
  }

 private:
  const std::string socket_;
  const int head_port_;
  net::AsioLoop loop_;
  std::unique_ptr<rpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<proto::LeaseDemand> demands_;
  std::thread thread_;
};

class GroupsTest : public ::testing::Test {
 protected:
  GroupsTest() {
    char name[] = "/tmp/groups_test_XXXXXX";
    directory_ = mkdtemp(name);
    head = std::make_unique<FakeHead>();
    node = std::make_unique<FakeNode>(directory_, head->port());
    worker::Options options;
    options.node_manager_socket = node->socket();
    options.log_sink = [this](const std::vector<worker::DriverLine>& lines) {
      std::lock_guard lock(mutex_);
      for (const auto& line : lines) said_ += line.text + "\n";
    };
    driver = worker::Worker::start(options).value();
  }
  ~GroupsTest() override {
    driver.reset();
    node.reset();
    head.reset();
    std::filesystem::remove_all(directory_);
  }
  static proto::GroupSpec spec(const std::string& name = "", int bundles = 1) {
    proto::GroupSpec spec;
    spec.set_name(name);
    for (int i = 0; i < bundles; ++i)
      (*spec.add_bundles()->mutable_resources()->mutable_units())["CPU"] = 10000;
    return spec;
  }
  Waited wait(const GroupId& id, int64_t deadline_us = -1) {
    return uninterrupted([&] { return worker::wait_group(*driver, id, deadline_us); });
  }
  std::string said() {
    std::lock_guard lock(mutex_);
    return said_;
  }

  std::string directory_, said_;
  std::mutex mutex_;
  std::unique_ptr<FakeHead> head;
  std::unique_ptr<FakeNode> node;
  std::unique_ptr<worker::Worker> driver;
};

TEST_F(GroupsTest, AGroupIsRegisteredWithTheIdsThatOnlyItsProcessKnowsAndWaitedFor) {
  auto id = worker::create_group(*driver, spec());
  ASSERT_TRUE(id);
  EXPECT_EQ(job_of(*id), job_id_from_int(5));
  proto::GroupSpec sent = head->wait_for_registration(1);
  EXPECT_EQ(sent.group_id(), id->binary());
  EXPECT_EQ(sent.job_id(), job_id_from_int(5).binary());
  EXPECT_EQ(sent.ray_namespace(), "test");
  EXPECT_EQ(sent.owner().worker_id(), driver->context().worker_id.binary());
  EXPECT_EQ(sent.creator_actor_id(), "");
  EXPECT_GT(sent.created_us(), 0);
  head->decide(*id, proto::GROUP_PENDING);
  EXPECT_EQ(wait(*id, steady_now_us() + 10'000), Waited::kTimeout);
  head->decide(*id, proto::GROUP_CREATED);
  EXPECT_EQ(wait(*id), Waited::kDone);
  EXPECT_EQ(wait(*id, steady_now_us()), Waited::kDone);
  EXPECT_EQ(worker::group_info(*driver, *id)->state(), proto::GROUP_CREATED);
}

TEST_F(GroupsTest, AWaitEndsWhenTheGroupIsRemoved) {
  auto id = worker::create_group(*driver, spec());
  head->wait_for_registration(1);
  std::thread remover([&] {
    ASSERT_TRUE(worker::remove_group(*driver, *id));
    head->wait_for_removal(*id);
    head->decide(*id, proto::GROUP_REMOVED);
  });
  EXPECT_EQ(wait(*id), Waited::kFailed);
  remover.join();
}

TEST_F(GroupsTest, WhoRemovesAGroupNeedNotWaitForTheNews) {
  GroupId id = *worker::create_group(*driver, spec());
  head->wait_for_registration(1);
  head->decide(id, proto::GROUP_CREATED);
  ASSERT_EQ(wait(id), Waited::kDone);
  proto::TaskTemplate task;
  task.set_name("f");
  task.set_num_returns(1);
  task.set_group_id(id.binary());
  std::vector<worker::Ref> returns;
  ASSERT_TRUE(driver->submit(*driver->make_template(task), {}, &returns));
  ASSERT_TRUE(worker::remove_group(*driver, id));
  EXPECT_EQ(wait(id), Waited::kFailed);
  ASSERT_EQ(wait_all(*driver, returns), Waited::kDone);
  auto value = driver->value_of(returns[0], 0);
  ASSERT_EQ(value->kind, worker::ValueKind::kError);
  auto error = worker::decode_error(value->inband);
  EXPECT_EQ(error->code(), static_cast<int>(Code::kUnschedulable));
  EXPECT_EQ(error->exit().kind(), proto::ExitInfo::GROUP_REMOVED);
  head->wait_for_removal(id);
}

TEST_F(GroupsTest, ANamedGroupWaitsForTheAnswerAndGivesItsError) {
  ASSERT_TRUE(worker::create_group(*driver, spec("mine")));
  EXPECT_EQ(head->registrations(), 1u);
  auto taken = worker::create_group(*driver, spec("taken"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kAlreadyExists);
  EXPECT_EQ(taken.error().message, "the name 'taken' is taken");
}

TEST_F(GroupsTest, AnUnnamedGroupThatIsRefusedSaysSo) {
  auto id = worker::create_group(*driver, spec("", 0));
  ASSERT_TRUE(id);
  EXPECT_EQ(wait(*id), Waited::kFailed);
  auto info = worker::group_info(*driver, *id);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->state(), proto::GROUP_REMOVED);
  EXPECT_EQ(info->why(), "a placement group needs a bundle or more");
  driver->stop();  // Prints what is left.
  EXPECT_NE(said().find("cannot be created"), std::string::npos) << said();
}

TEST_F(GroupsTest, LookupsTellWhatThereIs) {
  GroupId id = *worker::create_group(*driver, spec("mine"));
  head->decide(id, proto::GROUP_CREATED, "mine");
  auto found = worker::find_group(*driver, "mine", "");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->spec().group_id(), id.binary());
  EXPECT_EQ(worker::find_group(*driver, "other", "").error().code, Code::kNotFound);
  EXPECT_EQ(worker::find_group(*driver, "mine", "elsewhere").error().code, Code::kNotFound);
  Rng rng(3);
  GroupId unknown = make_group_id(job_id_from_int(5), rng);
  EXPECT_EQ(worker::group_info(*driver, unknown).error().code, Code::kNotFound);
  EXPECT_EQ(wait(unknown), Waited::kFailed);
  EXPECT_TRUE(worker::current_group(*driver).id.is_nil());
}

TEST_F(GroupsTest, AHeadThatWasStartedAgainHearsOfWhatItMayHaveLost) {
  GroupId pending = *worker::create_group(*driver, spec());
  GroupId created = *worker::create_group(*driver, spec());
  GroupId removed = *worker::create_group(*driver, spec());
  head->wait_for_registration(3);
  head->decide(created, proto::GROUP_CREATED);
  EXPECT_EQ(wait(created), Waited::kDone);
  ASSERT_TRUE(worker::remove_group(*driver, removed));
  head->wait_for_removal(removed);
  const int port = head->port();
  head.reset();
  head = std::make_unique<FakeHead>(port);
  EXPECT_EQ(head->wait_for_registration(1).group_id(), pending.binary());
  head->wait_for_subscription(created);
  head->decide(pending, proto::GROUP_CREATED);
  EXPECT_EQ(wait(pending), Waited::kDone);
  EXPECT_EQ(wait(created), Waited::kDone);
  EXPECT_EQ(head->registrations(), 1u);
}

TEST_F(GroupsTest, ATaskInAGroupAsksForABundleAndItsUseSubscribes) {
  Rng rng(4);
  GroupId id = make_group_id(job_id_from_int(9), rng);  // Another process made it.
  proto::TaskTemplate task;
  task.set_name("f");
  task.set_num_returns(1);
  task.set_group_id(id.binary());
  task.set_bundle_index(-1);
  std::vector<worker::Ref> returns;
  // The driver subscribes twice, for the group and for its new connection. Each time it hears of
  // the group as it is, and must not hear of the removal first.
  head->decide(id, proto::GROUP_PENDING);
  ASSERT_TRUE(driver->submit(*driver->make_template(task), {}, &returns));
  head->wait_for_subscription(id);
  proto::LeaseDemand demand = node->wait_for_demand(id);
  EXPECT_EQ(demand.bundle_index(), -1);
  EXPECT_TRUE(demand.no_spill());
  head->decide(id, proto::GROUP_REMOVED);
  ASSERT_EQ(wait_all(*driver, returns), Waited::kDone);
  EXPECT_EQ(driver->value_of(returns[0], 0)->kind, worker::ValueKind::kError);
}

// Which group each task ran in, as the executing worker says.
class CapturedTasks : public ::testing::Test {
 protected:
  std::string run(const std::string& how) {
    std::unique_ptr<WorkerPair> pair;
    auto body = [&](worker::ExecutingTask& task) -> std::string {
      // The worker that executes the task is the one that knows of a group of this thread's task.
      const bool first = !worker::current_group(pair->worker(0)).id.is_nil();
      worker::Worker& me = pair->worker(first ? 0 : 1);
      const worker::CurrentGroup group = worker::current_group(me);
      const std::string here = group.id.is_nil() ? "none"
                                                 : std::string(1, group.id.view()[0]) +
                                                       std::to_string(group.bundle_index) +
                                                       (group.captures_children ? "+" : "-");
      if (task.spec().name() == "child") return here;
      proto::TaskTemplate child;
      child.set_name("child");
      child.set_num_returns(1);
      child.set_placed_explicitly(as_view(task.args().at(0).inband) == "explicitly");
      if (as_view(task.args().at(0).inband) == "elsewhere") {
        child.set_group_id(std::string(18, 'e'));
        child.set_bundle_index(3);
      }
      const worker::Template* function = *me.make_template(child);
      std::vector<worker::Ref> returns;
      RT_CHECK(me.submit(function, {}, &returns));
      RT_CHECK(me.submit(function, {}, &returns));
      std::string all = here;
      for (const worker::Ref& ref : returns) {
        RT_CHECK(wait_all(me, {&ref, 1}) == Waited::kDone);
        auto value = me.value_of(ref, 0);
        all += " " + std::string(as_view(value->inband));
      }
      return all;
    };
    pair = std::make_unique<WorkerPair>(2, body);
    proto::TaskTemplate parent;
    parent.set_name("parent");
    parent.set_num_returns(1);
    parent.set_group_id(std::string(18, 'g'));
    parent.set_bundle_index(2);
    parent.set_captures_children(how != "no capture");
    return pair->get(pair->call(how, *pair->driver->make_template(parent)));
  }
};

TEST_F(CapturedTasks, RunInTheGroupOfTheirSubmitterUnlessTheySayWhereTheyRun) {
  EXPECT_EQ(run("plain"), "g2+ g-1+ g-1+");
  EXPECT_EQ(run("no capture"), "g2- none none");
  EXPECT_EQ(run("explicitly"), "g2+ none none");
  EXPECT_EQ(run("elsewhere"), "g2+ e3- e3-");
}

}  // namespace
}  // namespace rt::test
