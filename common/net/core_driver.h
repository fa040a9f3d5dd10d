// A core with its clock: passes events to it, and calls its tick() when that is due. docs/cores.md
// says what a core is.
//
// Threads: the loop's. The loop outlives the driver.
#pragma once

#include <type_traits>
#include <utility>

#include "common/base/clock.h"
#include "common/net/alarm.h"

namespace rt::net {

// Core has tick(Now), and next_tick_us(), which is -1 while it waits for no time.
template <class Core>
class CoreDriver {
 public:
  // The arguments are those of the core.
  template <class... Arguments>
  explicit CoreDriver(Loop& loop, Arguments&&... arguments)
      : core_(std::forward<Arguments>(arguments)...),
        alarm_(loop, [this] { drive([](Core& core, Now now) { core.tick(now); }); }) {}

  // Answers questions, which need no event.
  const Core& core() const { return core_; }
  // Runs an event. Every event goes through here, so that the next tick is armed. Returns what the
  // event returns.
  template <class Event>
  auto drive(Event&& event) {
    if constexpr (std::is_void_v<decltype(event(core_, Now()))>) {
      event(core_, system_now());
      arm();
    } else {
      auto result = event(core_, system_now());
      arm();
      return result;
    }
  }
  // Ends the ticks. Events still reach the core.
  void stop() {
    stopped_ = true;
    alarm_.clear();
  }

 private:
  void arm() {
    if (!stopped_) alarm_.ring_by(core_.next_tick_us());
  }

  Core core_;
  Alarm alarm_;
  bool stopped_ = false;
};

}  // namespace rt::net
