// The node's core with its clock: passes events to it, and calls its tick() when that is due.
// Threads: the loop's.
#pragma once

#include "common/base/clock.h"
#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/service/alarm.h"

namespace rt::node {

class CoreDriver {
 public:
  // `sink` and `settings` outlive the driver.
  CoreDriver(net::Loop& loop, NodeSink& sink, const Settings& settings,
             const NodeIdentity& identity)
      : core_(sink, settings, identity),
        alarm_(loop, [this] { drive([](NodeCore& core, Now now) { core.tick(now); }); }) {}

  const NodeCore& core() const { return core_; }
  // Every event goes through here, so that the next tick is armed.
  template <class F>
  void drive(F event) {
    event(core_, system_now());
    if (!alarm_.is_set() && !stopped_) alarm_.ring_by(core_.next_tick_us(system_now()));
  }
  // No process is started, no lease is granted, and nothing ticks any more.
  void stop() {
    stopped_ = true;
    core_.stop();
    alarm_.clear();
  }

 private:
  NodeCore core_;
  Alarm alarm_;
  bool stopped_ = false;
};

}  // namespace rt::node
