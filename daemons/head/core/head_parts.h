// The parts of the head's core, connected. HeadCore passes events to them, Consequences what a
// change of one means for others, and HeadView answers from them.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "common/base/rng.h"
#include "daemons/head/core/actor_manager.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/group_manager.h"
#include "daemons/head/core/jobs.h"
#include "daemons/head/core/kv.h"
#include "daemons/head/core/packages.h"
#include "daemons/head/core/submitted_jobs.h"
#include "daemons/head/core/subscriptions.h"

namespace rt::head {

struct HeadParts {
  // `to` must outlive the parts. `silent_node_lost` is called, during events, for nodes that are
  // declared dead because nothing is heard of them.
  HeadParts(
      HeadOptions given, HeadSink& to,
      std::function<void(const NodeId& node, const std::string& why, Now now)> silent_node_lost);
  ~HeadParts();
  HeadParts(const HeadParts&) = delete;
  HeadParts& operator=(const HeadParts&) = delete;

  const HeadOptions options;
  HeadSink& sink;
  Rng rng;
  Timers timers;
  Journal journal;
  Subscriptions subscriptions;
  Cluster cluster;
  Jobs jobs;
  Kv kv;
  Packages packages;
  GroupManager groups;
  ActorManager actors;
  SubmittedJobs submitted;

  // Known once recover() has read the state of an earlier head.
  std::string cluster_id;
  int64_t incarnation = 0;
};

}  // namespace rt::head
