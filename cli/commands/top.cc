// `rayctl top`: collects the answers for each page; top_text.h renders them.
#include <fmt/core.h>

#include "cli/client/head_client.h"
#include "cli/client/state_common.h"
#include "cli/commands.h"
#include "cli/commands/top_text.h"
#include "cli/terminal/screen.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "launch/node/launch.h"
#include "observability/state/sources.h"

namespace rt::cli {
namespace {

using HeadStub = proto::HeadService::Stub;
using Node = proto::NodeManagerService::Stub;
constexpr size_t kNodesAtOnce = 64, kMostNodeLines = 20;

// Asks the cluster for one page at a time. It remembers the last answers of the nodes, because CPU
// usage is the difference between two of them.
class TopSampler {
 public:
  TopSampler(state::Cluster cluster, int64_t timeout_us)
      : cluster_(std::move(cluster)), timeout_us_(timeout_us) {}

  Result<ClusterSnapshot> sample() {
    const int64_t deadline_us = steady_now_us() + timeout_us_;
    RT_ASSIGN(auto sources, state::Sources::connect(cluster_.head_address, cluster_.token,
                                                    timeout_us_, cluster_.connect_us));
    ClusterSnapshot snapshot;
    snapshot.address = cluster_.head_address;
    RT_ASSIGN(snapshot.status, sources->ask_head(&HeadStub::GetClusterStatus, proto::Empty()));
    std::vector<state::Sources::Place> places;
    for (const auto& node : snapshot.status.nodes()) {
      if (!node.alive()) continue;
      snapshot.nodes.push_back({node});
      places.push_back(
          {{net::Address::tcp(node.ip(), node.port()), "self", ""}, "node " + node.ip(), true});
    }
    sources->ask_each(places, &Node::GetHostStats, proto::Empty(), {.at_once = kNodesAtOnce},
                      [&](size_t at, const proto::HostStats& reply) {
                        snapshot.nodes[at].answered = true;
                        snapshot.nodes[at].now = reply;
                        snapshot.nodes[at].before = std::exchange(
                            last_[NodeId::from_binary(snapshot.nodes[at].node.node_id())], reply);
                      });
    std::vector<state::Sources::Place> answering;
    std::vector<size_t> their_nodes;
    for (size_t at = 0; at < places.size(); ++at) {
      if (!snapshot.nodes[at].answered) continue;
      answering.push_back(places[at]);
      their_nodes.push_back(at);
    }
    sources->ask_each(answering, &Node::ListProcesses, proto::Empty(), {.at_once = kNodesAtOnce},
                      [&](size_t at, const proto::ProcessesReply& reply) {
                        snapshot.nodes[their_nodes[at]].processes = reply;
                      });
    proto::ListActorsRequest living;
    living.set_alive_only(true);
    living.set_all_namespaces(true);
    RT_ASSIGN(auto actors, sources->ask_head(&HeadStub::ListActors, living));
    for (const auto& actor : actors.actors()) {
      const auto& spec = actor.spec();
      snapshot.actors[WorkerId::from_binary(actor.address().worker_id())] =
          spec.name().empty() ? spec.class_name()
                              : fmt::format("{} '{}'", spec.class_name(), spec.name());
    }
    RT_TRY(count_tasks(&snapshot, deadline_us - steady_now_us()));
    return snapshot;
  }

 private:
  Status count_tasks(ClusterSnapshot* snapshot, int64_t timeout_us) {
    state::Query query{"tasks"};
    query.timeout_us = timeout_us;
    RT_ASSIGN(auto answer, state::summarize(cluster_, query));
    const api_json::Json groups = answer.json.value("summary", api_json::Json::object());
    for (const auto& group : groups) {
      if (!group.contains("state_counts")) continue;
      for (const auto& [state, count] : group["state_counts"].items())
        snapshot->tasks[state] += count.get<int64_t>();
    }
    return {};
  }

  const state::Cluster cluster_;
  const int64_t timeout_us_;
  std::map<NodeId, proto::HostStats> last_;
};

Status run_top(const CommandLine& line, const Refresh& how, int64_t timeout_us, size_t limit) {
  state::Cluster cluster;
  RT_ASSIGN(cluster.head_address, launch::resolve_address(line.get("address")));
  RT_ASSIGN(cluster.token, client_token());
  RT_ASSIGN(cluster.connect_us, connect_us(line));
  TopOrder order = line.get("sort") == "memory" ? TopOrder::kMemory : TopOrder::kCpu;
  TopSampler sampler(std::move(cluster), timeout_us);
  return refresh(how, [&]() -> Result<std::string> {
    RT_ASSIGN(ClusterSnapshot snapshot, sampler.sample());
    return top_text(snapshot, order, kMostNodeLines, limit);
  });
}

}  // namespace

int run_top(const Words& words) {
  CommandLine line("top",
                   "Shows nodes, processors, memory, tasks by state and the busiest workers, again "
                   "and again, in place, until q. Without a terminal the pages follow each other.");
  line.address_option()
      .choice("sort", "cpu|memory", "what comes first (default cpu)")
      .option("limit", "N", "workers shown (default 20)")
      .timeout_option("for the answers of one page (default 30)");
  declare_refresh(line);
  if (auto code = line.parse(words)) return *code;
  auto how = refresh_of(line);
  if (!how) return usage_error("top", how.error().message);
  auto timeout = timeout_us(line);
  if (!timeout) return usage_error("top", timeout.error().message);
  auto limit = line.whole("limit", 0, 10'000);
  if (!limit) return usage_error("top", limit.error().message);
  constexpr int64_t kDefaultLimit = 20;
  return finish(run_top(line, *how, *timeout, static_cast<size_t>(limit->value_or(kDefaultLimit))));
}

}  // namespace rt::cli
