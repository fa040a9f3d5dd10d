// The executor of C++ workers, over sockets with a driver and a fake node-manager: the tasks that
// it refuses before user code runs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "cluster_runtime.h"
#include "common/base/rng.h"
#include "executor.h"
#include "tests/support/worker_pair.h"
#include "worker/core/value_codec.h"

namespace ray::internal {
namespace {

namespace w = rt::worker;

class CppWorker : public ::testing::Test {
 protected:
  CppWorker() {
    char name[] = "/tmp/cpp_worker_XXXXXX";
    directory_ = mkdtemp(name);
    node_ = std::make_unique<rt::test::FakeNodeManager>(directory_);
    w::Options options;
    options.node_manager_socket = node_->socket();
    options.is_driver = false;
    options.language = rt::proto::LANGUAGE_CPP;
    rt::Rng rng = rt::Rng::from_system();
    options.worker_id = rt::WorkerId::random(rng);
    runtime_ = std::make_unique<ClusterRuntime>(w::Worker::start(options).value(),
                                                ClusterRuntime::Options{});
    executor_ = std::make_unique<CppExecutor>(*runtime_);
    thread_ = std::thread([this] { runtime_->worker().run(*executor_); });
    w::Options driver_options;
    driver_options.node_manager_socket = node_->socket();
    driver_ = w::Worker::start(driver_options).value();
  }
  ~CppWorker() override {
    driver_.reset();
    node_.reset();  // The worker's run() returns when its node-manager is gone.
    thread_.join();
    executor_.reset();
    runtime_.reset();
    std::filesystem::remove_all(directory_);
  }
  // Waits for `ref` and returns the message of the error that it became.
  std::string error_of(const w::Ref& ref) {
    EXPECT_EQ(rt::test::wait_all(*driver_, {&ref, 1}), w::Waited::kDone);
    auto value = driver_->value_of(ref, 0);
    if (!value || value->kind != w::ValueKind::kError) return "no error";
    return w::decode_error(value->inband)->message();
  }

  std::string directory_;
  std::unique_ptr<rt::test::FakeNodeManager> node_;
  std::unique_ptr<ClusterRuntime> runtime_;
  std::unique_ptr<CppExecutor> executor_;
  std::thread thread_;
  std::unique_ptr<w::Worker> driver_;
};

TEST_F(CppWorker, FunctionsAreNoGenerators) {
  for (int returns : {-1, -2}) {
    rt::proto::TaskTemplate spec;
    spec.set_name("Counter");
    spec.set_num_returns(returns);
    (*spec.mutable_resources()->mutable_units())["CPU"] = 10000;
    std::vector<w::Ref> refs;
    ASSERT_TRUE(driver_->submit(*driver_->make_template(spec), {}, &refs));
    w::Ref item = refs.front();
    if (returns == -2) {
      ASSERT_EQ(rt::test::next_item(*driver_, refs.front(), &item), w::Waited::kDone);
    }
    std::string message = error_of(item);
    EXPECT_NE(message.find("need a generator"), std::string::npos) << message;
    EXPECT_NE(message.find("Counter"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace ray::internal
