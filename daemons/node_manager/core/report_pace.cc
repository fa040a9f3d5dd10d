#include "daemons/node_manager/core/report_pace.h"

#include <algorithm>

namespace rt::node {

void ReportPace::changed() {
  if (!is_planned()) due_us_ = last_us_ + min_interval_us_;
}

void ReportPace::begin_heartbeats(Now now) {
  if (beat_us_ < 0) beat_us_ = now.steady_us + heartbeat_us_;
}

bool ReportPace::tick(Now now) {
  bool send = is_planned() && now.steady_us >= due_us_;
  if (beat_us_ >= 0 && now.steady_us >= beat_us_) {
    beat_us_ = now.steady_us + heartbeat_us_;
    // A report of a change is a sign of life as well.
    send |= !is_planned() && now.steady_us - last_us_ >= heartbeat_us_ / 2;
  }
  return send;
}

void ReportPace::sent(Now now) {
  due_us_ = -1;
  last_us_ = now.steady_us;
}

int64_t ReportPace::next_tick_us() const {
  if (due_us_ < 0 || beat_us_ < 0) return std::max(due_us_, beat_us_);
  return std::min(due_us_, beat_us_);
}

}  // namespace rt::node
