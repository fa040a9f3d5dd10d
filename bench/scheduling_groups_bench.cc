// Measures how long the head's core takes to create and remove a placement group of one bundle,
// while others wait for room. There is no network and no disk: nodes and writes are answered at
// once.
#include <fmt/core.h>

#include <deque>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "daemons/head/core/head_core.h"

namespace rt::head {
namespace {

constexpr int kCycles = 20'000;

// Takes the decisions of the core and answers them for the benchmark.
struct Answerer final : HeadSink {
  std::deque<uint64_t> writes;
  std::deque<std::pair<NodeId, proto::PrepareBundlesRequest>> prepares;
  int64_t written = 0;

  void persist(uint64_t id, Batch batch) override {
    writes.push_back(id);
    written += static_cast<int64_t>(batch.size());
  }
  void create_actor(const NodeLink&, const proto::CreateActorRequest&) override {}
  void kill_worker(const NodeLink&, const proto::KillWorkerRequest&) override {}
  void prepare_bundles(const NodeLink& node, const proto::PrepareBundlesRequest& request) override {
    prepares.emplace_back(node.node, request);
  }
  void return_bundles(const NodeLink&, const proto::ReturnBundlesRequest&) override {}
  void start_job(const NodeLink&, const proto::StartJobProcessRequest&) override {}
  void stop_job(const NodeLink&, const std::string&) override {}
  void remove_job_log(const NodeLink&, const std::string&) override {}
  void probe(const NodeId&, const std::string&, int) override {}
  void push(ConnId, const proto::HeadEvent&) override {}
  void close(ConnId, const Error&) override {}
};

class Bench {
 public:
  explicit Bench(int nodes) : core_({}, sink_) {
    (void)core_.load({}, now());
    answer();
    for (int i = 1; i <= nodes; ++i) {
      proto::RegisterNodeRequest request;
      NodeId id = NodeId::random(rng_);
      if (i == 1) first_ = id;
      request.mutable_node()->set_node_id(id.binary());
      request.mutable_node()->set_ip(fmt::format("10.0.{}.{}", i / 256, i % 256));
      set(request.mutable_node()->mutable_total(), 8);
      core_.register_node(static_cast<ConnId>(i), request, now(), [](auto) {});
      answer();
    }
    proto::AddJobRequest job;
    job.set_node_id(first_.binary());
    core_.add_job(job, now(), [this](Result<proto::AddJobReply> reply) {
      job_ = JobId::from_binary(reply->job_id());
    });
    answer();
  }

  void pending(int count) {
    for (int i = 0; i < count; ++i) add(1'000);
  }
  // Returns the microseconds for each cycle, and the number of records written.
  std::pair<double, double> cycles() {
    const int64_t start = steady_now_us(), written = sink_.written;
    for (int i = 0; i < kCycles; ++i) {
      GroupId id = add(1);
      answer();
      proto::GroupRequest removal;
      removal.set_group_id(id.binary());
      core_.remove_group(1'000'000, removal, now(), [](auto) {});
      answer();
    }
    return {static_cast<double>(steady_now_us() - start) / kCycles,
            static_cast<double>(sink_.written - written) / kCycles};
  }

 private:
  static Now now() { return system_now(); }
  static void set(proto::Resources* out, double cpus) {
    ResourceSet::from_map({{"CPU", cpus}})->to_proto(out);
  }
  GroupId add(double cpus) {
    proto::RegisterGroupRequest request;
    GroupId id = make_group_id(job_, rng_);
    request.mutable_spec()->set_group_id(id.binary());
    request.mutable_spec()->set_job_id(job_.binary());
    set(request.mutable_spec()->add_bundles()->mutable_resources(), cpus);
    core_.register_group(1'000'000, request, now(), [](auto) {});
    return id;
  }
  void answer() {
    while (!sink_.writes.empty() || !sink_.prepares.empty()) {
      if (!sink_.writes.empty()) {
        const uint64_t id = sink_.writes.front();
        sink_.writes.pop_front();
        core_.persisted(id, {}, now());
        continue;
      }
      auto [node, request] = std::move(sink_.prepares.front());
      sink_.prepares.pop_front();
      proto::PrepareBundlesReply reply;
      reply.set_ok(true);
      core_.prepare_bundles_answered(node, GroupId::from_binary(request.group_id()),
                                     request.epoch(), reply, now());
    }
  }

  Rng rng_{1};
  Answerer sink_;
  HeadCore core_;
  NodeId first_;
  JobId job_;
};

}  // namespace
}  // namespace rt::head

int main() {
  fmt::print("| nodes | groups that wait | create and remove, µs | records written |\n");
  fmt::print("|---|---|---|---|\n");
  for (int nodes : {1, 1'000}) {
    for (int pending : {0, 10'000}) {
      rt::head::Bench bench(nodes);
      bench.pending(pending);
      auto [us, written] = bench.cycles();
      fmt::print("| {} | {} | {:.1f} | {:.1f} |\n", nodes, pending, us, written);
    }
  }
}
