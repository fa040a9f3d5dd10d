// The head's history of metrics: models daemons/head/service/head_metrics, and checks what is kept.
#pragma once

#include <deque>

#include "daemons/head/core/metrics_history.h"
#include "tests/sim/world.h"

namespace rt::sim {

class HeadSamples {
 public:
  explicit HeadSamples(World& world) : world_(world) {}

  // `alive`: the head takes samples of living nodes only.
  void add(const NodeId& node, const proto::NodeSample& sample, bool alive);
  void add_cluster();

 private:
  struct Sample {
    NodeId node;
    int64_t time_ms = 0;
    int running = 0;
  };
  // Little enough that a run of a minute fills it.
  static constexpr int64_t kKeepMs = 20'000, kMaxBytes = 8192, kFreshMs = 3000;

  void check();

  World& world_;
  head::MetricsHistory history_{kKeepMs, kMaxBytes};
  std::deque<Sample> kept_;  // samples of nodes that must be there; the oldest first
};

}  // namespace rt::sim
