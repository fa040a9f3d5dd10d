// Records who wants workers and who holds them. Demand is a level per (owner, scheduling class); a
// lease is a worker lent to an owner until it is returned. This class keeps the books and the
// order of service; NodeCore decides which demand is served, and by which node.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/resources/resource_set.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

struct Demand {
  OwnerId owner = 0;
  WorkerId process;  // the owner if it is a process of this node, else nil
  uint64_t class_id = 0;
  ResourceSet resources;
  RoomKey room;  // where they are wanted from; a bundle need not be here
  WorkerKind kind;
  JobId job;
  bool outlives_job = false;  // JobConfig.outlives_job
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  std::unique_ptr<const proto::NodeConstraint> constraint;  // null: any node
  // The search for a node: the last evaluation of `constraint`, and the next search.
  struct Target {
    bool excludes_this_node = false;
    // Bundles of later attempts than this one are not for use, since the record of their group may
    // never be written; 0: none is.
    int64_t newest_epoch = 0;
    // Since when the one node that the constraint names has been unknown; -1 while it is known.
    int64_t unknown_since_us = -1;
    int64_t next_redirect_us = 0;  // earliest time of the next search for another node
  };
  Target target;
  bool unplaced() const { return !room.is_node() && target.newest_epoch == 0; }
  // This node does not serve it, whatever is free.
  bool not_here() const { return unplaced() || target.excludes_this_node; }
  std::string what;  // name of one waiting function, for people
  // The owner was redirected here. It is redirected again only if this node drains.
  bool no_spill = false;
  int64_t backlog = 0;  // tasks that wait behind the wanted leases

  int want = 0;    // leases wanted beyond those granted and not returned
  int leases = 0;  // leases granted and not returned
  // Answers (grants, redirects) that the owner had not received when it sent its last demand,
  // oldest first: the number of the answer and how many leases it granted or moved away.
  std::deque<std::pair<uint64_t, int>> unacknowledged_answers;
  // Start of the current wait: when `want` became positive, or a lease was last granted or
  // returned.
  int64_t waiting_since_us = 0;
  // The last pass over the waiting demands found that it lacked resources that are in use, a worker
  // process, or only its turn, because what is free is set aside for others.
  enum class Lacks { kResources, kWorker, kTurn };
  Lacks lacks = Lacks::kResources;
  struct Infeasible {
    int64_t since_us = -1;  // since when no node could ever run it; -1 while one could
    bool warned = false;    // the owner has received the warning about that
  };
  Infeasible infeasible;
};

struct Lease {
  LeaseId id = 0;
  OwnerId owner = 0;
  uint64_t class_id = 0;
  WorkerId worker;
  bool revoked = false;  // the owner has been asked to return it
};

class LeaseQueue {
 public:
  using Key = std::pair<OwnerId, uint64_t>;

  Demand* find(OwnerId owner, uint64_t class_id);
  // Returns null when the owner already wants or holds leases in `max_classes` classes.
  Demand* find_or_add(OwnerId owner, uint64_t class_id, size_t max_classes);
  void set_want(Demand& demand, int want, Now now);
  // Returns the number of a redirect that moves `leases` of the demand to another node. The caller
  // has already lowered the demand's `want` by them.
  uint64_t number_redirect(Demand& demand, int leases);
  // Records that the owner has received `answer`, and with it every earlier one. May erase demands
  // of this owner, so references to them are invalid afterwards.
  void acknowledge_answers(OwnerId owner, uint64_t answer);
  // Applies a new demand message: the owner wants `want` leases beyond the answers up to number
  // `last_answer`. Later answers are still on their way to the owner and are subtracted from
  // `want`.
  void apply_demand(Demand& demand, int want, uint64_t last_answer, Now now);
  // Erases the demand if it has no want, no leases and no unacknowledged answers; the reference is
  // invalid afterwards.
  void erase_if_unused(Demand& demand);
  // All leases of the owner must have been removed before.
  void erase_owner_demands(OwnerId owner);

  // Records a lease and lowers the demand's `want` by one.
  Lease& add_lease(Demand& demand, const WorkerId& worker, Now now);
  Lease* find_lease(LeaseId id);
  // Removes a lease, which must exist. May erase its demand (see erase_if_unused()).
  void remove_lease(LeaseId id, Now now);
  std::vector<LeaseId> leases_of(OwnerId owner) const;

  LeaseId next_answer() const { return next_answer_; }
  bool nobody_waits() const { return waiting_.empty(); }
  // The number of tasks that wait and could run on some node, and of those that no node could run.
  std::pair<int64_t, int64_t> waiting_tasks() const;
  // The demands with a positive `want` in order of service. Starved ones (waiting since before
  // `starved_before_us`) come first, oldest first; the others follow by the number of leases their
  // owner holds, fewest first, then by age.
  std::vector<Demand*> fair_order(int64_t starved_before_us);
  const std::map<Key, Demand>& all() const { return demands_; }
  std::map<Key, Demand>& all() { return demands_; }
  const std::map<LeaseId, Lease>& leases() const { return leases_; }
  std::map<LeaseId, Lease>& leases() { return leases_; }
  void check_invariants() const;

 private:
  std::map<Key, Demand> demands_;
  std::set<Key> waiting_;  // want > 0
  std::map<LeaseId, Lease> leases_;
  std::map<OwnerId, int> owner_leases_;
  LeaseId next_answer_ = 1;  // leases and redirects share one sequence of numbers
};

}  // namespace rt::node
