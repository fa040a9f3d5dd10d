#include "tests/sim/head_samples.h"

#include <fmt/core.h>

namespace rt::sim {
namespace {

const proto::MetricsLine& line_of(const proto::MetricsLines& lines, const char* name) {
  for (const proto::MetricsLine& line : lines.lines()) {
    if (line.name() == name) return line;
  }
  violation(fmt::format("the history has no line '{}'", name));
}

}  // namespace

void HeadSamples::add(const NodeId& node, const proto::NodeSample& sample, bool alive) {
  if (!alive) return;
  const Now now = world_.clock.now();
  history_.add(node, "", sample, now);
  kept_.push_back({node, now.wall_us / 1000, sample.running()});
  check();
}

void HeadSamples::add_cluster() {
  const Now now = world_.clock.now();
  history_.add_cluster({}, kFreshMs, now);
  check();
  std::map<NodeId, const Sample*> last;
  for (const Sample& sample : kept_) last[sample.node] = &sample;
  float running = 0;
  for (const auto& [node, sample] : last) {
    if (sample->time_ms >= now.wall_us / 1000 - kFreshMs)
      running += static_cast<float>(sample->running);
  }
  proto::MetricsHistoryReply reply;
  history_.fill({}, [](const NodeId&) { return true; }, &reply, now);
  const auto& shown = line_of(reply.cluster(), "running").values();
  if (shown.empty() || shown[shown.size() - 1] != running)
    violation("the cluster's newest sample is not there, or is not the sum of those of its nodes");
}

// The newest samples of all nodes are kept, and as many of them as there is time and room for.
void HeadSamples::check() {
  history_.check_invariants();
  const Now now = world_.clock.now();
  proto::MetricsHistoryRequest all;
  all.set_all_nodes(true);
  proto::MetricsHistoryReply reply;
  history_.fill(all, [](const NodeId&) { return true; }, &reply, now);
  const int64_t since_ms = now.wall_us / 1000 - kKeepMs;
  while (!kept_.empty() && (kept_.front().time_ms < since_ms ||
                            static_cast<int64_t>(kept_.size()) > reply.most_samples()))
    kept_.pop_front();
  std::map<NodeId, std::vector<const Sample*>> expected;
  for (const Sample& sample : kept_) expected[sample.node].push_back(&sample);
  size_t shown = 0;
  for (const proto::MetricsLines& node : reply.nodes()) {
    const auto& samples = expected[NodeId::from_binary(node.node_id())];
    const auto& running = line_of(node, "running").values();
    const auto last = static_cast<int>(samples.size()) - 1;
    if (last < 0 || node.time_ms_size() != last + 1 ||
        node.time_ms(0) != samples.front()->time_ms ||
        running[last] != static_cast<float>(samples.back()->running))
      violation(fmt::format("the history has {} samples of node {}, not its {} newest ones",
                            node.time_ms_size(), to_hex(node.node_id()), last + 1));
    shown += samples.size();
  }
  if (shown != kept_.size())
    violation(fmt::format("the history has {} samples of nodes, not the {} newest ones", shown,
                          kept_.size()));
}

}  // namespace rt::sim
