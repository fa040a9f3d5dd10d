// Rings at a time, mostly for a core that says when it wants to be called (next_tick_us()). An
// alarm may ring too early, so that it is only ever moved forward: most events leave it as it is.
//
// Threads: the loop's. The loop outlives the alarm, whose end cancels the timer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/net/loop.h"

namespace rt::net {

class Alarm {
 public:
  Alarm(net::Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {}
  ~Alarm() { clear(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  bool is_set() const { return timer_ != 0; }
  // Lets the alarm ring at the steady time `at_us`, or earlier if it is set to an earlier time. -1
  // changes nothing.
  void ring_by(int64_t at_us) {
    if (at_us < 0 || (timer_ && at_us_ <= at_us)) return;
    clear();
    at_us_ = at_us;
    timer_ = loop_.run_after(std::max<int64_t>(0, at_us - loop_.now_us()), [this] {
      timer_ = 0;
      ring_();
    });
  }
  void clear() {
    if (timer_) loop_.cancel(std::exchange(timer_, 0));
  }

 private:
  net::Loop& loop_;
  const std::function<void()> ring_;
  net::Loop::TimerId timer_ = 0;
  int64_t at_us_ = 0;
};

}  // namespace rt::net
