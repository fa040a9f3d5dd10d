#include "daemons/head/core/metrics_history.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "common/base/status.h"

namespace rt::head {
namespace {

int64_t wall_ms(Now now) { return now.wall_us / 1000; }

}  // namespace

MetricsHistory::MetricsHistory(int64_t keep_ms, int64_t max_bytes)
    : keep_ms_(keep_ms), max_bytes_(max_bytes) {}

MetricsHistory::~MetricsHistory() = default;

const std::array<const char*, MetricsHistory::kNodeColumns> MetricsHistory::kNodeNames = {
    "cpu_percent", "memory_used", "memory_total",   "store_used", "store_capacity",
    "disk_used",   "disk_total",  "received_per_s", "sent_per_s", "running",
    "waiting",     "actors",      "workers"};

const std::array<const char*, MetricsHistory::kClusterColumns> MetricsHistory::kClusterNames = {
    "nodes",       "cpus",         "cpus_used",      "actors",         "actors_pending",
    "jobs",        "waiting",      "finished_per_s", "failed_per_s",   "cpu_percent",
    "memory_used", "memory_total", "store_used",     "store_capacity", "received_per_s",
    "sent_per_s",  "running"};

void MetricsHistory::add(const NodeId& node, const std::string& ip, const proto::NodeSample& sample,
                         Now now) {
  auto [number, added] = numbers_.try_emplace(node, last_number_ + 1);
  if (added) nodes_[++last_number_] = NodeEntry{node, ip};
  auto number_of = [](auto value) { return static_cast<float>(value); };
  node_rows_.push_back(
      {wall_ms(now),
       number->second,
       {sample.cpu_percent(), number_of(sample.memory_used()), number_of(sample.memory_total()),
        number_of(sample.store_used()), number_of(sample.store_capacity()),
        number_of(sample.disk_used()), number_of(sample.disk_total()), sample.received_per_s(),
        sample.sent_per_s(), number_of(sample.running()), number_of(sample.waiting()),
        number_of(sample.actors()), number_of(sample.workers())}});
  NodeEntry& entry = nodes_[number->second];
  ++entry.rows;
  entry.last = &node_rows_.back();
  trim(now);
}

void MetricsHistory::add_cluster(const ClusterUse& use, int64_t fresh_ms, Now now) {
  double cpu = 0, memory_used = 0, memory_total = 0, store_used = 0, store_capacity = 0,
         received = 0, sent = 0, running = 0, fresh = 0;
  for (const auto& [number, node] : nodes_) {
    // A sample from the future is one from before the clock was set back.
    if (std::abs(node.last->time_ms - wall_ms(now)) > fresh_ms) continue;
    const auto& values = node.last->values;
    ++fresh;
    cpu += values[0];
    memory_used += values[1];
    memory_total += values[2];
    store_used += values[3];
    store_capacity += values[4];
    received += values[7];
    sent += values[8];
    running += values[9];
  }
  ClusterRow row{wall_ms(now), 0, {}};
  const double values[] = {
      use.nodes,   use.cpus,     use.cpus_used,      use.actors,       use.actors_pending,
      use.jobs,    use.waiting,  use.finished_per_s, use.failed_per_s, fresh > 0 ? cpu / fresh : 0,
      memory_used, memory_total, store_used,         store_capacity,   received,
      sent,        running};
  static_assert(std::size(values) == kClusterColumns);
  std::transform(std::begin(values), std::end(values), row.values.begin(),
                 [](double value) { return static_cast<float>(value); });
  cluster_rows_.push_back(row);
  trim(now);
}

int64_t MetricsHistory::bytes() const {
  return static_cast<int64_t>(node_rows_.size() * sizeof(NodeRow) +
                              cluster_rows_.size() * sizeof(ClusterRow));
}

void MetricsHistory::drop_oldest() {
  const NodeRow& oldest = node_rows_.front();
  auto node = nodes_.find(oldest.node);
  if (--node->second.rows == 0) {
    numbers_.erase(node->second.id);
    nodes_.erase(node);
  }
  node_rows_.pop_front();
}

// The cluster's own samples have a quarter of the room, so that thousands of nodes cannot crowd
// them out.
void MetricsHistory::trim(Now now) {
  const int64_t since_ms = wall_ms(now) - keep_ms_;
  while (!cluster_rows_.empty() &&
         (cluster_rows_.front().time_ms < since_ms ||
          static_cast<int64_t>(cluster_rows_.size() * sizeof(ClusterRow)) > max_bytes_ / 4))
    cluster_rows_.pop_front();
  while (!node_rows_.empty() &&
         (node_rows_.front().time_ms < since_ms ||
          static_cast<int64_t>(node_rows_.size() * sizeof(NodeRow)) > max_bytes_ / 4 * 3))
    drop_oldest();
}

// `rows` are pointers, ordered by time. Averages neighbours until there are at most max_points.
template <class Rows, class Names>
void MetricsHistory::fill_lines(const Rows& rows, const Names& names, int max_points,
                                proto::MetricsLines* out) {
  for (const char* name : names) out->add_lines()->set_name(name);
  size_t together = max_points > 0 ? (rows.size() + static_cast<size_t>(max_points) - 1) /
                                         static_cast<size_t>(max_points)
                                   : 1;
  for (size_t first = 0; first < rows.size(); first += together) {
    size_t end = std::min(rows.size(), first + together);
    out->add_time_ms(rows[end - 1]->time_ms);
    for (size_t column = 0; column < names.size(); ++column) {
      double sum = 0;
      for (size_t i = first; i < end; ++i) sum += rows[i]->values[column];
      out->mutable_lines(static_cast<int>(column))
          ->add_values(static_cast<float>(sum / static_cast<double>(end - first)));
    }
  }
}

void MetricsHistory::fill(const proto::MetricsHistoryRequest& request,
                          const std::function<bool(const NodeId&)>& alive,
                          proto::MetricsHistoryReply* reply, Now now) const {
  const int64_t since_ms = std::max(request.since_ms(), wall_ms(now) - keep_ms_);
  std::vector<const ClusterRow*> cluster;
  for (const ClusterRow& row : cluster_rows_) {
    if (row.time_ms >= since_ms) cluster.push_back(&row);
  }
  fill_lines(cluster, kClusterNames, request.max_points(), reply->mutable_cluster());
  reply->mutable_cluster()->set_alive(true);
  reply->set_kept_samples(static_cast<int64_t>(samples()));
  reply->set_most_samples(max_bytes_ / 4 * 3 / static_cast<int64_t>(sizeof(NodeRow)));
  reply->set_sample_bytes(sizeof(NodeRow));
  std::set<NodeId> wanted;
  for (const std::string& id : request.node_ids()) wanted.insert(NodeId::from_binary(id));
  if (!request.all_nodes() && wanted.empty()) return;
  std::map<uint32_t, std::vector<const NodeRow*>> by_node;
  for (const NodeRow& row : node_rows_) {
    if (row.time_ms >= since_ms && (request.all_nodes() || wanted.contains(nodes_.at(row.node).id)))
      by_node[row.node].push_back(&row);
  }
  for (const auto& [number, rows] : by_node) {
    const NodeEntry& node = nodes_.at(number);
    proto::MetricsLines* lines = reply->add_nodes();
    lines->set_node_id(node.id.binary());
    lines->set_ip(node.ip);
    lines->set_alive(alive(node.id));
    fill_lines(rows, kNodeNames, request.max_points(), lines);
  }
}

void MetricsHistory::check_invariants() const {
  size_t rows = 0;
  for (const auto& [number, node] : nodes_) {
    rows += node.rows;
    RT_CHECK(node.rows > 0 && node.last && node.last->node == number &&
             numbers_.at(node.id) == number);
  }
  RT_CHECK(rows == node_rows_.size());
  RT_CHECK(nodes_.size() == numbers_.size());
  RT_CHECK(bytes() <= max_bytes_);
}

}  // namespace rt::head
