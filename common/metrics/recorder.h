// The metrics of one process: counters, gauges and histograms with their values by tags, as
// reported to the node-manager.
//
// Threads: every method may be called from any thread; a mutex of its own guards it, so that
// recording never waits for I/O.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/proto/node_manager.pb.h"

namespace rt::metrics {

struct Definition {
  std::string name, description;
  proto::Metric::Kind kind = proto::Metric::COUNTER;
  std::vector<std::string> tag_keys;
  std::vector<double> boundaries;  // of a histogram: upper bounds of its buckets, ascending
};

class Recorder {
 public:
  static constexpr size_t kMaxSeries = 10'000;  // of all metrics; what would be one more is dropped

  enum class Recorded {
    kDone,
    kReportDue,  // the first value since the last report(): somebody is to send one
    kOverflow,   // not recorded, as there are kMaxSeries; said once
  };

  // The same definition again is the same metric.
  uint32_t define(const Definition& definition);
  // `tag_values` in the order of the metric's tag_keys. A counter and a histogram's sum grow by
  // `value`, a gauge becomes it.
  Recorded record(uint32_t metric, const std::vector<std::string>& tag_values, double value);
  // All values so far. False: none has come since the last report.
  bool report(proto::MetricsReport* report);
  // Forgets the values, not the definitions.
  void clear();

 private:
  struct Series {
    double value = 0;
    std::vector<int64_t> buckets;
  };
  struct Metric {
    Definition definition;
    std::map<std::vector<std::string>, Series> series;
  };
  std::mutex mutex_;
  std::vector<Metric> metrics_;
  std::unordered_map<std::string, uint32_t> by_definition_;
  size_t series_ = 0;
  bool changed_ = false, overflow_said_ = false;
};

}  // namespace rt::metrics
