// Holds the metrics of one process: counters, gauges and histograms, with their values by tags.
// They are reported to the node-manager as a whole.
//
// Every method may be called from any thread. The Recorder has its own mutex and does no I/O, so
// recording never waits for a report to be sent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/mutex.h"
#include "common/proto/node_manager.pb.h"

namespace rt::metrics {

struct Definition {
  std::string name, description;
  proto::Metric::Kind kind = proto::Metric::COUNTER;
  std::vector<std::string> tag_keys;
  std::vector<double> boundaries;  // For a histogram, the upper bounds of its buckets, ascending.
};

class Recorder {
 public:
  // The most series of all metrics together. Values for further combinations of tags are dropped.
  static constexpr size_t kMaxSeries = 10'000;

  enum class Recorded {
    kDone,
    // This is the first value since the last report(): the caller arranges for a report.
    kReportDue,
    kOverflow,  // Dropped because there are kMaxSeries; returned once, so that the caller can warn.
  };

  // Returns the id of the metric. Equal definitions have the same id.
  uint32_t define(const Definition& definition);
  // Records a value; `tag_values` are in the order of the metric's tag_keys. Counters and sums of
  // histograms grow by `value`, a gauge is set to it.
  Recorded record(uint32_t metric, const std::vector<std::string>& tag_values, double value);
  // Writes all values into `report`. Returns false, without writing, if nothing was recorded since
  // the last report.
  bool report(proto::MetricsReport* report);
  // Removes all values; definitions stay.
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
  Mutex mutex_;
  std::vector<Metric> metrics_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> by_definition_ GUARDED_BY(mutex_);
  size_t series_ GUARDED_BY(mutex_) = 0;
  bool changed_ GUARDED_BY(mutex_) = false;
  bool overflow_said_ GUARDED_BY(mutex_) = false;
};

}  // namespace rt::metrics
