// Time is passed as an argument, so that core/ directories need no clock. Steady time measures
// time-outs and durations; wall time stamps events for people.
#pragma once

#include <cstdint>

namespace rt {

struct Now {
  int64_t steady_us = 0;
  int64_t wall_us = 0;
};

// Read the operating system's clocks, in microseconds. For service/ directories and main.cc only.
int64_t steady_now_us();
int64_t wall_now_us();
inline Now system_now() { return {steady_now_us(), wall_now_us()}; }

}  // namespace rt
