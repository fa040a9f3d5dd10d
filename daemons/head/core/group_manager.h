// Everything that happens to placement groups: registration, placement, removal, loss of nodes, and
// reconciliation with a node that comes back after a lost connection or a restart of the head.
//
// A group is placed in three steps. Its nodes are chosen; each is asked to reserve its bundles, all
// of them or none; when all have answered, the group's record is written. The record is the
// commit: before it is on disk nobody is told of the nodes, and after any crash the bundles that no
// record names are given back. An attempt is identified by its epoch, which is higher than that of
// every earlier one, also across restarts of the head.
//
//   group_manager.cc             registration, removal, questions, recovery
//   group_manager_placement.cc   queue -> nodes -> record
//   group_manager_nodes.cc       nodes that register and nodes that are lost
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/base/recent_set.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/gone_groups.h"
#include "daemons/head/core/groups.h"
#include "daemons/head/core/jobs.h"
#include "daemons/head/core/subscriptions.h"

namespace rt::head {

class GroupManager {
 public:
  struct Env {
    const HeadOptions& options;
    HeadSink& sink;
    Journal& journal;
    Timers& timers;
    Cluster& cluster;
    Subscriptions& subscriptions;
    Jobs& jobs;
    std::function<bool(const ActorId&)> actor_lives;
  };
  explicit GroupManager(Env env);

  // Must be the first call: it makes epochs and versions of this incarnation of the head higher
  // than those of all earlier ones.
  void begin(int64_t incarnation);

  // Requests of clients. add() subscribes the connection to the group and replies at once, or for a
  // group with a name once it is on disk; when it fails, subscribers are told that the group is
  // removed, and why. remove() replies once no head that is started later can have the group again.
  void add(ConnId conn, const proto::GroupSpec& spec, Now now, Reply<proto::Empty> reply);
  void remove(ConnId conn, const proto::GroupRequest& request, Now now, Reply<proto::Empty> reply);
  Result<proto::GetGroupReply> get(const proto::GetGroupRequest& request) const;
  proto::ListGroupsReply list() const;
  // Returns the news for a new subscriber; nothing while the group is not known or not yet on disk.
  std::optional<proto::GroupInfo> told(const GroupId& id) const;
  // The groups that wait for nodes.
  void add_pending(google::protobuf::RepeatedPtrField<proto::GroupInfo>* groups) const;

  // Answers of nodes. One about another attempt than the current one changes nothing; bundles that
  // it says are reserved are given back.
  void prepare_answered(const NodeId& node, const GroupId& id, int64_t epoch,
                        const Result<proto::PrepareBundlesReply>& reply, Now now);
  // Compares the bundles that a (re-)registered node says it holds with those that the directory
  // has on it.
  void node_registered(NodeState& node,
                       const google::protobuf::RepeatedPtrField<proto::HeldBundle>& held, Now now);
  // Returns how many groups lost bundles.
  int node_lost(NodeState& node, Now now);

  // Ends of jobs, of processes and, for good, of actors.
  void job_finished(const JobId& job, Now now);
  void owners_dead(const std::vector<WorkerId>& workers, Now now);
  void actor_dead(const ActorId& actor, Now now);

  // Recovery after a restart of the head.
  void recover(proto::GroupInfo info);
  // Notes that every recorded node is back or given up: bundles that no node brought back look for
  // other nodes.
  void nodes_settled(Now now);

  // end_event() runs at the end of every event: places queued groups, forgets the oldest removed
  // ones. want_placement() makes it look for nodes.
  void end_event(Now now);
  void want_placement() { placement_wanted_ = true; }
  // News since the last call that concern actors in groups.
  struct News {
    std::vector<std::pair<GroupId, std::string>> removed;  // With the reason.
    bool created = false;                                  // Whether bundles have got nodes.
    bool none() const { return removed.empty() && !created; }
  };
  News take_news() { return std::exchange(news_, {}); }

  std::optional<std::string> record(const std::string& key) const;
  const GroupDirectory& directory() const { return directory_; }
  void check_invariants() const;

 private:
  using Phase = Group::Phase;

  Status check_creator(const proto::GroupSpec& spec) const;
  // Whether the group goes on although its job has finished.
  bool outlives_job(const Group& group) const;
  void committed(const GroupId& id, const Status& status, Now now);
  void refuse(const proto::GroupSpec& spec, const Error& why);
  void end(Group& group, const std::string& why, Now now);
  void write_end(const GroupId& id);

  void queue(Group& group, Now now);
  void place(Now now);
  // Places the queued groups of one shape, oldest first. Stops at the first group for which there
  // is no room, and returns false.
  bool place_shape(GroupQueue& queue, Now now);
  void begin_attempt(Group& group, const scheduling::BundleNodes& nodes, Now now);
  // Writes the record of a group in kRecording, and repeats that until the disk takes it.
  void write_record(Group& group, Now now);
  void recorded(const GroupId& id, int64_t epoch, const Status& status, Now now);
  // Gives back what the attempt has reserved. The group is then in kWaiting.
  void cancel_attempt(Group& group, const std::string& why, Now now);
  void retry_later(Group& group, Now now);
  void lose_bundles(Group& group, const std::set<int>& lost, const std::string& why, Now now);
  void persist(Group& group);

  Env env_;
  GroupDirectory directory_;
  int64_t last_epoch_ = 0;
  bool settled_ = false;
  GoneGroups gone_;
  RecentSet<WorkerId> ended_owners_{10'000};
  // Removed groups whose end is not on disk yet, with the replies that wait for it.
  std::map<GroupId, std::vector<Reply<proto::Empty>>> ending_;
  News news_;
  bool placement_wanted_ = false;
  Timers::Id place_timer_ = 0;
  // Shapes whose queues were empty until a group joined; place() has not looked at them yet.
  std::vector<std::string> fresh_;
  // If a pass could not look at all shapes, the next one, after a pause, begins behind this shape.
  std::string last_shape_;
  int64_t next_pass_us_ = 0;
};

}  // namespace rt::head
