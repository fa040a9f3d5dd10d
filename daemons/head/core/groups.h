// The directory of placement groups: records, names and indexes. It decides nothing (see
// group_manager.h); move() is the only way to change a group's phase.
//
//   phase        state shown          meaning
//   kCommitting                       it has a name, and its registration is not on disk yet
//   kWaiting     PENDING, or          it was refused a moment ago, or the head has restarted and
//                RESCHEDULING         the nodes of its bundles may still come back
//   kQueued      the same             it looks for nodes
//   kPreparing   the same             nodes were asked to reserve its bundles
//   kRecording   PREPARED, or         the nodes reserve the bundles; its record is being written
//                RESCHEDULING
//   kCreated     CREATED              its record says which node holds which bundle
//   kRemoved     REMOVED              the last removed_groups_kept are kept, in memory only (the
//                                     ids of some on disk: see gone_groups.h)
//
// RESCHEDULING is shown once a group was created and has lost bundles.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/scheduling/bundles.h"
#include "daemons/head/core/gone_groups.h"
#include "daemons/head/core/timers.h"
#include "daemons/head/core/types.h"

namespace rt::head {

// One try to find nodes for the bundles that have none.
struct GroupAttempt {
  struct Part {
    std::vector<int> indexes;
    ResourceSet amount;
    bool held = false;  // Whether the node has answered that it reserves them.
  };
  int64_t epoch = 0;
  int64_t began_us = 0;  // By the steady clock.
  std::map<NodeId, Part> parts;

  bool all_held() const;
  bool has(const NodeId& node, int index) const;
};

struct Group {
  enum class Phase { kCommitting, kWaiting, kQueued, kPreparing, kRecording, kCreated, kRemoved };

  GroupId id;
  JobId job;
  // The durable record of a group that has a name or was created.
  proto::GroupInfo info;
  scheduling::BundleSet bundles;
  Phase phase = Phase::kCommitting;
  bool was_created = false;
  bool on_disk = false;  // Whether a record of it is, or may be, on disk.
  // The connection that registered the group; 0 after a restart of the head. Whoever removes the
  // group through another connection is not its creator.
  ConnId creator_conn = 0;
  // Set in kWaiting after a restart of the head: it looks for nodes when all nodes are back.
  bool recovered = false;
  std::optional<GroupAttempt> attempt;  // Set in kPreparing and kRecording.
  // In kRecording the record that is being written: the group as it is once that is on disk.
  std::optional<proto::GroupInfo> recording;
  std::string shape;  // The key of its queue.
  uint64_t queue_seq = 0;
  int64_t queued_since_us = 0;
  int refusals = 0;  // How many attempts in a row nodes refused.
  // The choices of refused attempts, not to be made again while there are others.
  scheduling::RefusedGpus refused_gpus;
  Timers::Id timer = 0;
  // Replies to its registration, before it is on disk.
  std::vector<std::function<void(const Status&)>> on_committed;
  // The nodes that hold its bundles or were asked to.
  std::set<NodeId> nodes;

  bool removed() const { return phase == Phase::kRemoved; }
  bool visible() const { return phase != Phase::kCommitting; }
  // The node that holds the bundle, or nil. The record of a removed group still names its last
  // nodes.
  NodeId node_of(int bundle) const;
  // The amounts of these bundles together.
  ResourceSet sum_of(const std::vector<int>& indexes) const;
  // Names the group in messages: 'name' or its id.
  std::string label() const;
  // Whether the group ends with the process that created it and not with its job.
  bool ends_with_owner() const;
  // The record that belongs on disk.
  const proto::GroupInfo& record() const { return recording ? *recording : info; }
};

// Groups of one shape differ in nothing that placement looks at, so they are placed oldest first.
struct GroupQueue {
  std::map<uint64_t, Group*> groups;  // By queue_seq.
  // Jobs whose drivers were told that the shape is infeasible.
  std::set<JobId> warned;
  uint64_t warned_up_to = 0;  // The jobs of groups up to this one are in `warned`.
  int64_t warn_at_us = 0;     // The steady time before which the queue is not looked at again.
};

class GroupDirectory {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name

  Group* find(const GroupId& id);
  const Group* find(const GroupId& id) const;
  Group* find_named(const std::string& ray_namespace, const std::string& name);
  const Group* find_named(const std::string& ray_namespace, const std::string& name) const;
  const std::unordered_map<GroupId, Group>& all() const { return groups_; }

  // Sets the groups that were removed before the head restarted, or that are forgotten here. They
  // must outlive the last call of is_gone().
  void set_gone(const GoneGroups* gone) { gone_ = gone; }
  // Whether the group was removed, so that nobody will register it again.
  bool is_gone(const GroupId& id) const { return gone_ && gone_->contains(id); }

  // Later versions of all groups are higher than this one.
  void set_version(int64_t version) { last_version_ = version; }
  int64_t version() const { return last_version_; }
  // Adds a group in phase kCommitting and reserves its name. The id must be new, the name free.
  Group& add(proto::GroupInfo info);
  // Checks the transition, and keeps state, version, queue, name and indexes right.
  void move(Group& group, Group::Phase to);
  // Sets the nodes and attempts of all bundles, as `nodes` and `epochs` say by bundle.
  void set_nodes(Group& group, const std::vector<NodeId>& nodes,
                 const std::vector<int64_t>& epochs);
  // Brings the index of nodes up to date after a change of `attempt`.
  void index_nodes(Group& group);
  void next_version(Group& group) { group.info.set_version(++last_version_); }
  // Forgets the oldest removed groups beyond `limit`.
  void forget_removed(size_t limit);

  // Groups that are not removed.
  std::vector<Group*> of_job(const JobId& job);
  std::vector<Group*> created_by(const ActorId& creator);
  // The groups for which Group::ends_with_owner() holds.
  std::vector<Group*> owned_by(const WorkerId& owner);
  std::vector<Group*> on_node(const NodeId& node);
  std::map<std::string, GroupQueue>& queues() { return queues_; }
  const std::map<std::string, GroupQueue>& queues() const { return queues_; }
  // The number of groups in a state.
  int64_t count(proto::GroupState state) const { return counts_[static_cast<size_t>(state)]; }

  void check_invariants() const;

 private:
  void leave(Group& group);
  void enter(Group& group);
  void index(Group& group, bool add);

  std::unordered_map<GroupId, Group> groups_;
  std::map<Name, GroupId> names_;
  std::unordered_map<JobId, std::set<GroupId>> by_job_;
  std::unordered_map<ActorId, std::set<GroupId>> by_creator_;
  std::unordered_map<WorkerId, std::set<GroupId>> by_owner_;
  std::unordered_map<NodeId, std::set<GroupId>> by_node_;
  std::map<std::string, GroupQueue> queues_;
  std::deque<GroupId> removed_;  // The oldest comes first.
  std::array<int64_t, proto::GroupState_ARRAYSIZE> counts_{};
  uint64_t last_seq_ = 0;
  int64_t last_version_ = 0;
  const GoneGroups* gone_ = nullptr;
};

}  // namespace rt::head
