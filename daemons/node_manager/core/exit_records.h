// How the processes of this node ended: what is reported of an end, and the last ends.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/worker_pool.h"

namespace rt::node {

// Describes the end of a worker: why the node-manager ended it, or else what the operating system
// says.
proto::ExitInfo describe_end(const NodeIdentity& me, const Worker& worker, const ProcessEnd& end);
// The same for a driver whose connection has closed.
proto::ExitInfo describe_end_of_driver(const NodeIdentity& me, const Worker& driver);
// Describes a process that lives. `actor` is what runs or ran in it, or nil.
proto::ProcessInfo describe(const Worker& worker, const ActorId& actor);

class ExitRecords {
 public:
  static constexpr size_t kMost = 1000;

  // `process` is what describe() said of it last. Beyond kMost the oldest is forgotten.
  void add(proto::ProcessInfo process, const proto::ExitInfo& info, Now now);
  // Returns null if the process lives, was never here or has been forgotten.
  const proto::ExitInfo* find(const WorkerId& id) const;
  void fill(proto::ProcessesReply* reply) const;
  void check_invariants() const;

 private:
  std::unordered_map<WorkerId, proto::ProcessInfo> ends_;
  std::deque<WorkerId> order_;  // keys of ends_, oldest first
};

}  // namespace rt::node
