// Who wants workers and who has them: demand is a level per (owner, class), a lease is a worker
// lent until it is returned. Bookkeeping and order; NodeCore decides who is served from where.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/resources/resource_set.h"
#include "daemons/node_manager/core/types.h"

namespace rt::node {

struct Demand {
  OwnerId owner = 0;
  uint64_t class_id = 0;
  ResourceSet resources;
  WorkerKind kind;
  JobId job;
  bool outlives_job = false;                                // JobConfig.outlives_job
  std::string strategy;                                     // "" or SPREAD
  std::unique_ptr<const proto::NodeConstraint> constraint;  // null: any node
  bool not_here = false;       // the constraint excludes this node, as far as known
  int64_t gone_since_us = -1;  // the only node it may run on is not known; -1: it is
  std::string what;
  bool no_spill = false;
  int64_t backlog = 0;

  int want = 0;    // beyond what was granted
  int leases = 0;  // granted and not returned
  std::deque<std::pair<uint64_t, int>>
      unseen;  // (number, leases) of answers the owner had not seen when it last spoke
  int64_t waiting_since_us = 0;  // since the first want, or since it last got or gave back a lease
  int64_t next_redirect_us = 0;  // no redirect is looked for before
  int64_t infeasible_since_us = -1;  // -1: some node could run it
  bool infeasible_said = false;
};

struct Lease {
  LeaseId id = 0;
  OwnerId owner = 0;
  uint64_t class_id = 0;
  WorkerId worker;
  bool revoked = false;
};

class LeaseQueue {
 public:
  using Key = std::pair<OwnerId, uint64_t>;

  Demand* find(OwnerId owner, uint64_t class_id);
  // Null when the owner already waits, or has leases, in `max_classes` of them.
  Demand* find_or_add(OwnerId owner, uint64_t class_id, size_t max_classes);
  void set_want(Demand& demand, int want, int64_t now_us);
  // Numbers an answer that moved `leases` of the demand elsewhere; its want has been lowered by
  // them.
  uint64_t number_redirect(Demand& demand, int leases);
  // The owner has spoken of an answer: it has seen those before, too. The demands may be gone
  // afterwards.
  void seen(OwnerId owner, uint64_t answer);
  // The owner wants `want` beyond what it had been answered up to `last_answer`: what is on its way
  // to it counts against that.
  void restate(Demand& demand, int want, uint64_t last_answer, int64_t now_us);
  // Drops the demand when nothing refers to it any more; it may be gone afterwards.
  void tidy(Demand& demand);
  void erase_owner_demands(OwnerId owner);

  Lease& add_lease(Demand& demand, const WorkerId& worker, int64_t now_us);
  Lease* find_lease(LeaseId id);
  void remove_lease(LeaseId id, int64_t now_us);
  std::vector<LeaseId> leases_of(OwnerId owner) const;

  LeaseId next_answer() const { return next_answer_; }
  bool nobody_waits() const { return waiting_.empty(); }
  // Those that wait, the starved first (waiting since before `starved_before_us`, oldest first),
  // then by how few leases their owner has, then by age.
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
  LeaseId next_answer_ = 1;  // of leases and redirects
};

}  // namespace rt::node
