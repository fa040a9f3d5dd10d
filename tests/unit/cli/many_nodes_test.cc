// Ten thousand nodes through the real program: rayctl asks, over real RPC, a head that holds
// nothing but the answers. The test prints how long each command took (docs/performance.md has the
// figures).
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <thread>

#include "common/base/clock.h"
#include "common/net/asio_loop.h"
#include "common/proto/head.pb.h"
#include "common/resources/resource_set.h"
#include "common/rpc/connection.h"
#include "common/rpc/server.h"

namespace rt::cli {
namespace {

using ::testing::HasSubstr;
constexpr int kNodes = 10'000;

proto::Node node_of(int number) {
  proto::Node node;
  std::string id(28, '\0');
  for (int i = 0; i < 4; ++i) id[static_cast<size_t>(i)] = static_cast<char>(number >> (8 * i));
  id[27] = 1;
  node.set_node_id(id);
  node.set_name(fmt::format("worker-{}", number));
  node.set_ip(fmt::format("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255));
  node.set_port(7000);
  node.set_hostname(node.name());
  node.set_session_dir("/tmp/ray/session_2026-01-01_00-00-00_000000_1");
  node.set_node_manager_socket(node.session_dir() + "/sockets/raylet");
  node.set_object_store_socket(node.session_dir() + "/sockets/plasma_store");
  ResourceSet::from_map({{"CPU", 64},
                         {"GPU", 8},
                         {"memory", 5e11},
                         {"object_store_memory", 2e11},
                         {"node:" + node.ip(), 1},
                         {"accelerator_type:X", 1}})
      ->to_proto(node.mutable_total());
  ResourceSet::from_map({{"CPU", number % 65},
                         {"GPU", 8},
                         {"memory", 5e11},
                         {"object_store_memory", 2e11},
                         {"node:" + node.ip(), 1}})
      ->to_proto(node.mutable_available());
  (*node.mutable_labels())["ray.io/accelerator-type"] = "X";
  (*node.mutable_labels())["zone"] = fmt::format("z{}", number % 7);
  node.set_alive(true);
  node.set_is_head(number == 0);
  node.set_start_time_ms(1'700'000'000'000 + number);
  return node;
}

int64_t cpu_of_children_us() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

// Answers from a fixed list of kNodes nodes.
class FixedAnswersHead : public proto::HeadService {
 public:
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  FixedAnswersHead() {
    for (int i = 0; i < kNodes; ++i) *nodes_.add_nodes() = node_of(i);
  }
  void GetNodes(Controller*, const proto::GetNodesRequest*, proto::GetNodesReply* reply,
                Closure* done) override {
    *reply = nodes_;
    done->Run();
  }
  void GetClusterStatus(Controller*, const proto::Empty*, proto::ClusterStatusReply* reply,
                        Closure* done) override {
    *reply->mutable_nodes() = nodes_.nodes();
    reply->set_wall_time_ms(1'700'000'000'000);
    done->Run();
  }

 private:
  proto::GetNodesReply nodes_;
};

class ManyNodes : public testing::Test {
 protected:
  ManyNodes()
      : server_(std::make_unique<rpc::Server>(
            loop_, rpc::ServerOptions{.identity = {"head", "", "c", "", ""},
                                      .on_connection = [this](const auto& connection) {
                                        connection->add_service(&head_);
                                      }})) {
    RT_CHECK(static_cast<bool>(server_->listen(net::Address::tcp("127.0.0.1", 0))));
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~ManyNodes() override {
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  // The output of `rayctl WORDS`, which has to succeed.
  std::string output_of(const std::string& words) {
    std::string command = fmt::format("RAY_AUTH_MODE=disabled {} {} --address=127.0.0.1:{} 2>&1",
                                      RT_RAYCTL, words, port_),
                out;
    int64_t begin_us = steady_now_us(), cpu_begin_us = cpu_of_children_us();
    std::FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 65536> piece;
    for (size_t n = 1; n > 0;) {
      n = fread(piece.data(), 1, piece.size(), pipe);
      out.append(piece.data(), n);
    }
    EXPECT_EQ(pclose(pipe), 0) << out.substr(0, 1000);
    fmt::print("{:<46} {:>5} ms, of CPU {:>5} ms, {:>9} bytes\n", words,
               (steady_now_us() - begin_us) / 1000, (cpu_of_children_us() - cpu_begin_us) / 1000,
               out.size());
    return out;
  }
  static auto lines(const std::string& text, const std::string& with) {
    int count = 0;
    for (size_t at = text.find(with); at != std::string::npos; at = text.find(with, at + 1))
      ++count;
    return count;
  }

  net::AsioLoop loop_;
  FixedAnswersHead head_;
  std::unique_ptr<rpc::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

TEST_F(ManyNodes, StatusHasALineForEach) {
  std::string text = output_of("status");
  EXPECT_EQ(lines(text, " 1 node_"), kNodes);
  EXPECT_THAT(text, HasSubstr("/640000.0 CPU\n"));
  EXPECT_THAT(text, HasSubstr("/80000.0 GPU\n"));
  EXPECT_EQ(lines(output_of("status -v"), "\nNode: worker-"), kNodes);
  EXPECT_EQ(lines(output_of("status --format=json"), "\"NodeID\""), kNodes);
  EXPECT_EQ(lines(output_of("status --format=yaml"), " NodeID: "), kNodes);
}

TEST_F(ManyNodes, NodesHasARowForEach) {
  std::string text = output_of("nodes");
  EXPECT_EQ(lines(text, "alive"), kNodes);
  EXPECT_THAT(text, HasSubstr("10.0.39.15:7000"));
  EXPECT_EQ(lines(output_of("nodes --format=json"), "\"NodeID\""), kNodes);
  EXPECT_EQ(lines(output_of("nodes --format=yaml"), " NodeID: "), kNodes);
}

TEST_F(ManyNodes, ListShowsThemAll) {
  std::string text = output_of("list nodes --limit=10000");
  EXPECT_THAT(text, HasSubstr("Total: 10000\n"));
  EXPECT_EQ(lines(text, "ALIVE"), kNodes);
  EXPECT_EQ(lines(output_of("list nodes --limit=10000 --format=json"), "\"node_id\""), kNodes);
  EXPECT_EQ(lines(output_of("list nodes --limit=10000 --detail"), "node_name: "), kNodes);
  EXPECT_EQ(lines(output_of("list nodes --filter node_name=worker-9999"), "worker-9999"), 1);
}

TEST_F(ManyNodes, ResourcesAreSummed) {
  EXPECT_THAT(output_of("cluster-resources"), HasSubstr("640000.0"));
}

}  // namespace
}  // namespace rt::cli
