// Time is passed as an argument, so that core/ directories need no clock. Steady time measures
// time-outs and durations; wall time stamps events for people.
#pragma once

#include <cstdint>

namespace rt {

// The half of Now that measures durations. For the events that come once for each task: reading
// the other clock would cost each of them as well.
struct SteadyNow {
  int64_t steady_us = 0;
};

struct Now {
  int64_t steady_us = 0;
  int64_t wall_us = 0;
  operator SteadyNow() const { return {steady_us}; }
};

// Read the operating system's clocks, in microseconds. Only service/ directories and main.cc may
// call them.
int64_t steady_now_us();
int64_t wall_now_us();
inline SteadyNow steady_now() { return {steady_now_us()}; }
inline Now system_now() { return {steady_now_us(), wall_now_us()}; }

}  // namespace rt
