// Keeps the requests that wait for room in the node's object store, as the store said last, and
// decides what is told of them: to the head in reports, and to the drivers whose puts and tasks
// wait for long. The service asks the store.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/object_store.pb.h"

namespace rt::node {

class StoreWaits {
 public:
  // `node_ip` names the node to people. What waits in its store fails after `create_wait_ms`.
  StoreWaits(NodeId node, std::string node_ip, int64_t create_wait_ms);

  struct Turn {
    bool changed = false;                     // waits() has changed
    std::vector<proto::LeaseNotice> notices;  // for the drivers of jobs
  };
  // Takes an answer of the store. The driver of a job is told once per episode, when something of
  // its job has waited for a second; the episode ends when nothing has waited for ten seconds.
  Turn take(const proto::StoreStats& stats, Now now);

  // Null when nothing waits.
  const proto::StoreWaits* waits() const { return waits_.waiters_size() > 0 ? &waits_ : nullptr; }

 private:
  std::string describe(const JobId& job, Now now) const;

  proto::StoreWaits waits_;
  // Jobs whose drivers were told, with the time (steady clock) when something of them waited last.
  std::map<JobId, int64_t> told_;
};

}  // namespace rt::node
