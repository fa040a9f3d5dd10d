// Placement groups as the head has described them to this process: their states, and which node
// holds which bundle.
//
// A group is in the view from its first use on (watch(), upon which the caller subscribes at the
// head) until it is removed and nothing here uses it. News that are older than what is known are
// ignored; a removed group never comes back.
//
// Pure: news come in through methods; the caller moves demand when one returns true. Guarded by
// the worker's mutex.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "worker/core/group_demand.h"

namespace rt::worker {

class GroupView {
 public:
  // Bundles on this node are asked for at the local node-manager.
  void set_here(const NodeId& node) { here_ = node; }

  // Returns true when the group was not in the view, so that the head must be asked for it.
  bool watch(const GroupId& id);
  // The same for a group that this process creates: it is known before the head tells of it.
  bool watch_own(const GroupId& id);
  bool watches(const GroupId& id) const { return groups_.contains(id); }
  bool owns(const GroupId& id) const;
  // The head's spec of a group that this process has created; null: nothing yet, or not own.
  const proto::GroupSpec* own_spec(const GroupId& id) const;
  std::vector<GroupId> watched() const;
  bool empty() const { return groups_.empty(); }
  // A user keeps the group in the view. The group must be watched.
  void use(const GroupId& id) { ++groups_.at(id).uses; }
  void unuse(const GroupId& id);

  // News of the head. Returns true when the state, or the node or epoch of a bundle, is another one
  // than before.
  bool update(const proto::GroupInfo& info);
  // The head does not know the group, or has refused it: it is treated as removed, unless the head
  // tells of it after all.
  bool lost(const GroupId& id, const std::string& why);
  // Forgets the group if it is removed and unused. Its id is not valid in other calls afterwards.
  void forget_if_unused(const GroupId& id);
  // Forgets the group, whatever is known of it. Nothing may use it.
  void forget(const GroupId& id);

  // Tells whether the head has said anything about the group, or that it does not know it.
  bool heard_of(const GroupId& id) const;
  bool created(const GroupId& id) const;
  bool removed(const GroupId& id) const;
  // Whether it was removed before this process knew anything of it, so that what is to run in it
  // was submitted after the removal.
  bool gone_before(const GroupId& id) const;
  // The sentence of the head that says why it waits or was removed; may be empty.
  std::string why(const GroupId& id) const;

  // Where a task with these resources asks for leases; never empty. `bundle_index` -1: any bundle.
  std::vector<GroupTarget> targets(const GroupId& id, int bundle_index,
                                   const ResourceSet& resources) const;
  // A phrase that says what keeps a task in such a bundle from being sent to a worker.
  std::string waits_for(const GroupId& id, int bundle_index) const;

 private:
  struct Group {
    proto::GroupInfo info;  // That of a removed group has only state, version and `why`.
    bool heard = false;
    bool lost = false;  // See lost().
    bool own = false;
    bool gone_before = false;
    int uses = 0;
    bool gone() const { return lost || info.state() == proto::GROUP_REMOVED; }
  };
  const Group* find(const GroupId& id) const;

  NodeId here_;
  std::unordered_map<GroupId, Group> groups_;
};

}  // namespace rt::worker
