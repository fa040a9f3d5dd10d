// Decides when the node reports its resources and demand to the head: soon after a change, but not
// more often than every resource_report_min_interval_ms, and every heartbeat_interval_ms when
// nothing changes, so that the head knows that the node lives.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/config/settings.h"

namespace rt::node {

class ReportPace {
 public:
  explicit ReportPace(const Settings& settings)
      : min_interval_us_(settings.resource_report_min_interval_ms * 1000),
        heartbeat_us_(settings.heartbeat_interval_ms * 1000) {}

  // There is something to report. Called often.
  void changed();
  bool is_planned() const { return due_us_ >= 0; }
  // The node is registered: heartbeats begin. Calls after the first have no effect.
  void begin_heartbeats(Now now);
  // Returns true if a report is to be sent now.
  bool tick(Now now);
  void sent(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const;

 private:
  const int64_t min_interval_us_, heartbeat_us_;
  int64_t due_us_ = -1;   // when the report that is planned is due; -1: none is
  int64_t beat_us_ = -1;  // the next heartbeat; -1: none before the registration
  int64_t last_us_ = 0;   // the last report
};

}  // namespace rt::node
