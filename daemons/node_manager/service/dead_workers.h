// Tells everyone of the workers that have died: the head, the other processes of this node, and the
// store, which frees what they owned. Deaths come in bursts, such as at the end of a job, and are
// told in one message. Threads: the loop's.
#pragma once

#include "common/base/ids.h"
#include "common/net/alarm.h"
#include "common/proto/head.pb.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/node_parts.h"

namespace rt::node {

class DeadWorkers {
 public:
  // `head` outlives this object.
  DeadWorkers(net::Loop& loop, HeadLink& head, const Sessions& sessions, StoreLink* store);

  void add(const WorkerId& id);
  // Deaths from now on are told only together with earlier ones: that the node ends says it.
  void stop() { stopped_ = true; }

 private:
  void tell();

  HeadLink& head_;
  const Sessions& sessions_;
  StoreLink* const store_;  // null: a node without a store
  net::Alarm alarm_;
  google::protobuf::RepeatedPtrField<std::string> batch_;  // since the last message
  bool stopped_ = false;
};

}  // namespace rt::node
