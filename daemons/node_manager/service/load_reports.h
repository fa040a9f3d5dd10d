// Tells the head what is free on the node and what waits there (ReportResources), when
// core/report_pace.h says so. Reports that are due while the head is away are dropped: the
// registration carries the state. Threads: the loop's.
#pragma once

#include <functional>

#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/report_pace.h"
#include "daemons/node_manager/service/alarm.h"
#include "daemons/node_manager/service/head_link.h"

namespace rt::node {

class LoadReports {
 public:
  using Fill = std::function<void(proto::ResourceReport*)>;
  // `head` and `settings` outlive the reports.
  LoadReports(net::Loop& loop, const Settings& settings, HeadLink& head, Fill fill);

  // The report would differ from the last one. Called often.
  void changed();
  // Sends a report that is planned before its time.
  void hurry();
  // The node is registered: reports its state, and from now on its life.
  void begin();
  // No report follows.
  void stop() { alarm_.clear(), stopped_ = true; }

 private:
  void send();
  void tick();

  HeadLink& head_;
  const Fill fill_;
  ReportPace pace_;
  Alarm alarm_;
  bool stopped_ = false;
};

}  // namespace rt::node
