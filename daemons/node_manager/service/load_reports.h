// Tells the head what is free on the node and what waits there (ReportResources), when
// core/report_pace.h says so. Reports that are due while the head is away are dropped: the
// registration carries the state. Threads: the loop's.
#pragma once

#include "common/net/alarm.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/report_pace.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/node_parts.h"

namespace rt::node {

class LoadReports {
 public:
  // `head` outlives the reports.
  LoadReports(net::Loop& loop, const Settings& settings, HeadLink& head, NodeParts node);

  // The report would differ from the last one. Called often.
  void changed();
  // Sends a report that is planned before its time.
  void hurry();
  // The node is registered: reports its state, and from now on its life.
  void begin();
  // No report follows.
  void stop() { alarm_.clear(), stopped_ = true; }
  // Objects use store memory that no task has requested, so that the report subtracts it from
  // object_store_memory. Leases on this node do not depend on it.
  void fill(proto::ResourceReport* report) const;

 private:
  void send();
  void tick();

  HeadLink& head_;
  const NodeParts node_;
  ReportPace pace_;
  net::Alarm alarm_;
  bool stopped_ = false;
};

}  // namespace rt::node
