// The cluster's use in the last hours, for plots: one sample of each node and one of the cluster
// every few seconds, kept in memory within a bound in time and in bytes.
//
// The oldest sample of all nodes is dropped first, so nodes that have left keep their past as long
// as nodes that are still there. Samples have the time of the wall clock, because they are for
// people.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/metrics.pb.h"

namespace rt::head {

// The part of a cluster sample that only the head knows. Rates are per second since the sample
// before.
struct ClusterUse {
  double nodes = 0, cpus = 0, cpus_used = 0, actors = 0, actors_pending = 0, jobs = 0, waiting = 0,
         finished_per_s = 0, failed_per_s = 0;
};

class MetricsHistory {
 public:
  MetricsHistory(int64_t keep_ms, int64_t max_bytes);
  ~MetricsHistory();

  void add(const NodeId& node, const std::string& ip, const proto::NodeSample& sample, Now now);
  // Adds a cluster sample, with the sums over the samples that nodes sent within the last
  // `fresh_ms`.
  void add_cluster(const ClusterUse& use, int64_t fresh_ms, Now now);
  // `alive` says whether a node is part of the cluster at this moment.
  void fill(const proto::MetricsHistoryRequest& request,
            const std::function<bool(const NodeId&)>& alive, proto::MetricsHistoryReply* reply,
            Now now) const;

  size_t samples() const { return node_rows_.size() + cluster_rows_.size(); }
  int64_t bytes() const;
  void check_invariants() const;

 private:
  static constexpr size_t kNodeColumns = 13, kClusterColumns = 17;
  template <size_t N>
  struct Row {
    int64_t time_ms = 0;
    uint32_t node = 0;  // The number of the node; 0 for the cluster.
    std::array<float, N> values{};
  };
  using NodeRow = Row<kNodeColumns>;
  using ClusterRow = Row<kClusterColumns>;
  struct NodeEntry {
    NodeId id;
    std::string ip;
    size_t rows = 0;
    // Points into node_rows_, whose elements do not move.
    const NodeRow* last = nullptr;
  };
  static const std::array<const char*, kNodeColumns> kNodeNames;
  static const std::array<const char*, kClusterColumns> kClusterNames;

  void trim(Now now);
  void drop_oldest();
  template <class Rows, class Names>
  static void fill_lines(const Rows& rows, const Names& names, int max_points,
                         proto::MetricsLines* out);

  const int64_t keep_ms_, max_bytes_;
  std::deque<NodeRow> node_rows_;  // Ordered by time.
  std::deque<ClusterRow> cluster_rows_;
  std::map<uint32_t, NodeEntry> nodes_;
  std::map<NodeId, uint32_t> numbers_;
  uint32_t last_number_ = 0;
};

}  // namespace rt::head
