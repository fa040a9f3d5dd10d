// Tells everyone of the workers that have died, as core/death_news.h says. Threads: the loop's.
#pragma once

#include "common/base/ids.h"
#include "common/net/alarm.h"
#include "daemons/node_manager/core/death_news.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/node_parts.h"

namespace rt::node {

class DeadWorkers {
 public:
  // `head` outlives this object.
  DeadWorkers(net::Loop& loop, HeadLink& head, const Sessions& sessions, StoreLink* store);

  void add(const WorkerId& id);
  // Deaths from now on are told only together with earlier ones: that the node ends says it.
  void stop() { news_.stop(); }

 private:
  void tell();

  HeadLink& head_;
  const Sessions& sessions_;
  StoreLink* const store_;  // null: a node without a store
  DeathNews news_;
  net::Alarm alarm_;
};

}  // namespace rt::node
