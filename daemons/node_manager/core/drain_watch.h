// Whether the node leaves the cluster on request (Drain), and when: once nothing runs on it any
// more, or at the deadline. NodeCore::drain() meanwhile refuses new work.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

class DrainWatch {
 public:
  // `core` outlives the watch.
  explicit DrainWatch(const NodeCore& core);
  ~DrainWatch();

  // A further request replaces the reason and the deadline. Returns kInvalid for an unknown reason
  // or a negative deadline. A node that is to leave because it is idle refuses while it is not:
  // `store_used` are the bytes of objects in its store.
  Result<proto::DrainReply> ask(const proto::DrainRequest& request, int64_t store_used, Now now);
  // The last request that was accepted, for NodeCore::drain(); null: none was.
  const proto::NodeDrain* accepted() const { return drain_ ? &*drain_ : nullptr; }
  // Returns true when the node is to leave now.
  bool tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return next_us_; }

 private:
  const NodeCore& core_;
  std::optional<proto::NodeDrain> drain_;
  int64_t deadline_us_ = 0;  // steady clock; 0: none
  int64_t next_us_ = -1;     // when it is looked again whether the node is idle
};

}  // namespace rt::node
