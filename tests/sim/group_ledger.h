// The record of what really became of the placement groups: who wants them, which reservations
// the head has committed, and which groups must go.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt::sim {

struct GroupPlan {
  proto::GroupSpec::Strategy strategy = proto::GroupSpec::PACK;
  std::vector<ResourceSet> bundles;
  std::string name;
  bool detached = false;
  // Its creator removes it as soon as it has found the head again.
  bool removed_when_back = false;
};

struct GroupRecord {
  GroupPlan plan;
  uint64_t owner = 0;       // number of the process that created it
  bool registered = false;  // the head has accepted it, as its owner knows
  // It must go: somebody removes it, its job has ended, or the head has refused it.
  bool doomed = false;
  bool removed = false;           // the head has confirmed a removal
  std::set<uint64_t> removed_by;  // the processes that wait for the answer to a removal
  // The head may or may not have heard of its registration, or of its removal, because the process
  // that asked for that has ended since.
  bool uncertain = false;
};

class GroupLedger {
 public:
  // ---- owners
  void created(const GroupId& id, GroupPlan plan, uint64_t owner);
  void registered(const GroupId& id) { groups_.at(id).registered = true; }
  void doom(const GroupId& id) { groups_.at(id).doomed = true; }
  void removal_sent(const GroupId& id, uint64_t owner);
  void removal_confirmed(const GroupId& id);
  void owner_ended(uint64_t owner);

  // ---- head
  // A record has reached the disk: whatever nodes it names hold bundles for good.
  void committed(const proto::GroupInfo& info);
  // The head tells somebody of the group. Nobody may hear of a reservation that is not committed.
  void check_news(const proto::GroupInfo& info) const;

  // ---- nodes
  bool was_committed(const GroupId& id, int index, const NodeId& node, int64_t epoch) const {
    return committed_.contains({id, index, node, epoch});
  }

  bool empty() const { return groups_.empty(); }
  bool knows(const GroupId& id) const { return groups_.contains(id); }
  const GroupRecord& at(const GroupId& id) const { return groups_.at(id); }
  const std::map<GroupId, GroupRecord>& all() const { return groups_; }
  std::string describe() const;  // one line per group
  // Whether everything in this group must go. False for a nil id.
  bool doomed(const GroupId& id) const { return !id.is_nil() && groups_.at(id).doomed; }

 private:
  // The bundles of STRICT_SPREAD and STRICT_PACK are where these strategies allow them.
  void check_strategy(const GroupId& id, const proto::GroupInfo& info) const;

  std::map<GroupId, GroupRecord> groups_;
  std::set<std::tuple<GroupId, int, NodeId, int64_t>> committed_;  // with the index and the epoch
};

}  // namespace rt::sim
