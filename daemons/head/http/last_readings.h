// The previous reading of each machine; percentages cover the time since then.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/proto/node_manager.pb.h"

namespace rt::head {

// Any thread may call.
class LastReadings {
 public:
  // Keeps `now` as the reading of the node and returns the one before it, which is empty if there
  // is none.
  proto::HostStats exchange(const NodeId& node, const proto::HostStats& now) {
    MutexLock lock(mutex_);
    return std::exchange(readings_[node], now);
  }
  // Forgets all other nodes.
  void keep(const std::set<NodeId>& nodes) {
    MutexLock lock(mutex_);
    std::erase_if(readings_, [&](const auto& entry) { return !nodes.contains(entry.first); });
  }

 private:
  Mutex mutex_;
  std::map<NodeId, proto::HostStats> readings_ GUARDED_BY(mutex_);
};

}  // namespace rt::head
