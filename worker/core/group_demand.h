// The demand of a scheduling class whose tasks run in a placement group: which node-managers are
// asked for leases, and which level each of them was told last.
//
// The class of one bundle asks the node that holds it. The class of any bundle asks every node that
// holds one which is large enough, each for all that is wanted, because only those nodes know what
// is free; grants beyond the need go back at once. While no node is known the local node-manager is
// asked, where the demand waits and is seen.
//
// Pure; guarded by the worker's mutex.
#pragma once

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "common/base/ids.h"

namespace rt::worker {

struct GroupTarget {
  NodeId node;  // Nil: the local node-manager.
  // More leases than this have no room there at the same time.
  int most = std::numeric_limits<int>::max();
  // That of the newest bundle there that is known to be for use; 0: the demand only waits there.
  int64_t epoch = 0;
};

class GroupDemand {
 public:
  // `bundle_index` -1 means any bundle.
  GroupDemand(const GroupId& group, int bundle_index);
  ~GroupDemand();
  const GroupId& group() const { return group_; }
  int bundle_index() const { return bundle_; }

  // The bundles are elsewhere from now on. `targets` is not empty, and names no node twice. The
  // next levels() withdraws what was asked for at other nodes. Returns what set_removed() does.
  bool move_to(std::vector<GroupTarget> targets, bool removed);
  // Returns true when the group was not known to be removed, and is now.
  bool set_removed(bool removed) { return !std::exchange(removed_, removed) && removed; }
  bool removed() const { return removed_; }
  // GroupTarget::epoch of the node, 0 if the demand is not for it.
  int64_t epoch_at(const NodeId& node) const;
  bool in_many_places() const { return targets_.size() > 1; }

  struct Level {
    NodeId node;
    int want = 0;
    int64_t backlog = 0;
  };
  // The messages that let every target know that `needed` more leases are wanted, and the first one
  // about how many tasks wait, so that lists do not count them for each node. They count as sent.
  std::vector<Level> levels(int needed, int64_t backlog);
  // The node has granted a lease, and so wants one less by itself.
  void granted(const NodeId& node);
  // The node knows nothing of this demand any more. Returns whether it did.
  bool forget(const NodeId& node);
  void clear();
  // Whether a node has been told that leases are wanted.
  bool wants() const { return !sent_.empty(); }

 private:
  const GroupId group_;
  const int bundle_;
  std::vector<GroupTarget> targets_{{}};
  struct Sent {
    int want = 0;
    int64_t epoch = 0;
  };
  std::map<NodeId, Sent> sent_;  // Only levels above 0.
  int64_t told_backlog_ = 0;
  bool removed_ = false;
};

}  // namespace rt::worker
