// The metrics of this node's user programs: what each process said last, and what those that ended
// had counted.
//
// Counters and histograms of an ended process stay in the sums; its gauges go with it. The number
// of series is bounded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"

namespace rt::node {

class MetricsTable {
 public:
  static constexpr int64_t kMaxSeries = 100'000;
  explicit MetricsTable(int64_t max_series = kMaxSeries) : max_series_(max_series) {}

  // The whole state of a process in place of what it said before. What is not well-formed is left
  // out. False: series were dropped because the node keeps max_series already; true again for the
  // calls after the first such one: it is to be said once.
  bool report(const WorkerId& id, const proto::MetricsReport& report);
  void process_ended(const WorkerId& id);
  // A report per living process, and one without a worker id: the sums of the ended ones.
  void fill(proto::MetricsReply* reply) const;

  int64_t series() const { return living_series_ + ended_series_; }
  void check_invariants() const;

 private:
  struct Ended {
    proto::Metric definition;  // without series
    std::map<std::vector<std::string>, proto::MetricSeries> series;
  };
  bool has_room(int64_t more) const { return living_series_ + ended_series_ + more <= max_series_; }

  const int64_t max_series_;
  std::map<WorkerId, proto::MetricsReport> living_;
  std::map<std::string, Ended> ended_;  // by definition
  int64_t living_series_ = 0, ended_series_ = 0;
  bool overflow_said_ = false;
};

}  // namespace rt::node
