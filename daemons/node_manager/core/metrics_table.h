// The metrics of user programs on this node: the last report of each living process, and the sums
// over all processes that ended.
//
// When a process ends, its counters and histograms are added to the sums and its gauges are
// dropped. The number of series is bounded: the sums of those that ended first make room for living
// processes.
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
  explicit MetricsTable(int64_t max_series = kMaxSeries);

  // Replaces the state of a process; a report is always complete. Malformed series are skipped,
  // and series beyond `max_series` are dropped. Returns false for the first report of which series
  // had to be dropped, so that the caller warns once, and true for every other report.
  bool report(const WorkerId& id, const proto::MetricsReport& report);
  void process_ended(const WorkerId& id);
  // Adds one report per living process, and one without a worker id that has the sums over the
  // processes that ended.
  void fill(proto::MetricsReply* reply) const;

  int64_t series() const { return living_series_ + ended_series_; }
  void check_invariants() const;

 private:
  struct Sum {
    proto::MetricSeries series;
    uint64_t number = 0;  // That of the newest end of a process that is added here.
  };
  struct Ended {
    proto::Metric definition;  // The newest one, without series.
    std::map<std::vector<std::string>, Sum> series;
  };
  void drop_oldest_ended();
  bool has_room(int64_t more) const { return living_series_ + ended_series_ + more <= max_series_; }

  const int64_t max_series_;
  std::map<WorkerId, proto::MetricsReport> living_;
  std::map<std::string, Ended> ended_;  // By name, kind and keys of tags.
  uint64_t ends_ = 0;                   // Counts the processes that have ended.
  int64_t living_series_ = 0, ended_series_ = 0;
  bool overflow_said_ = false;
};

}  // namespace rt::node
