// One pass over the waiting demands: who gets a lease here, and who is sent to another node.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemons/node_manager/core/leases.h"
#include "daemons/node_manager/core/reservation.h"

namespace rt::node {

// It lives for one pass. Redirects are gathered into one message per (demand, node).
class Leases::Round {
 public:
  Round(Leases& leases, bool may_start, Now now)
      : leases_(leases), node_(leases.node_), may_start_(may_start), now_(now) {}

  void run();

 private:
  // The outcome of one attempt to serve a demand: a lease of a worker here; a redirect of one lease
  // to another node; resources are free, but a process has to be started first; no node has room.
  enum class Served { kGranted, kRedirected, kNoWorker, kNoRoom };

  // The amounts that a room of this node has left to give in this pass.
  struct Plan {
    RoomKey key;
    const Room* room;
    // The free resources, less the grants of this pass and those set aside for starved demands, for
    // bundles that wait, and for demands whose workers are starting.
    ResourceSet planned;
    // The resources that come back by themselves, and the same without what parents hold. Parents
    // are processes that run a task in this room and have a demand of their own here.
    std::optional<Prospect> prospect = {}, without_parents = {};
    std::set<WorkerId> parents = {};
    // The part of what is set aside that only parents can complete.
    ResourceSet left_to_children = {};
  };
  // While it exists, the plan includes what has been set aside but is not kept from this demand
  // (rule 3 of reservation.h).
  class Loan;
  // The bundles that a demand may be served from, as far as they may still have room.
  struct Search {
    std::vector<RoomKey> rooms;
    size_t first = 0;  // The rooms before have no room for it in this pass.
  };

  // For how long a demand waits until it is starved.
  int64_t starved_after_us() const;
  // Tries to find a worker or another node for one lease of the demand.
  Served serve(Demand& demand);
  Served serve_unconstrained(Demand& demand, Plan& plan);
  Served serve_constrained(Demand& demand, Plan& plan);
  Served serve_in_group(Demand& demand);
  // No node has room for the demand now. Returns the other node at which it should wait, or kNoNode
  // if it should wait here.
  scheduling::NodeSlot where_to_wait(const Demand& demand, Plan& plan,
                                     const scheduling::NodeMask& among,
                                     const scheduling::NodeMask& preferred = {});
  // Tries to find a worker in the room of the plan for a lease. `last` is the value of turns_last_
  // before this node was chosen.
  Served serve_here(Demand& demand, Plan& plan, scheduling::NodeSlot last);
  Served send_to(Demand& demand, scheduling::NodeSlot node);
  void send_redirects();
  void fail(Demand& demand, const std::string& message);
  void grant(Demand& demand, Worker& worker, Plan& plan);
  // Asks for up to `most` processes for leases of the demand, as far as the plan has room, and sets
  // the resources of these leases aside while the processes start. Returns for how many it asked.
  int ask_for_processes(const Demand& demand, Plan& plan, int most);

  // Notes why the demand has no room, and sets aside what it needs if it is starved.
  void keep_waiting(Demand& demand);
  // Sets aside what a starved demand needs, as far as the rules of reservation.h allow. Returns
  // false if they do not.
  bool set_aside(Plan& plan, const ResourceSet& request);
  void look_ahead(Plan& plan);

  Plan& plan_of(const RoomKey& key);
  Search& search_of(const Demand& demand);
  // Where demands may be placed in this pass.
  const scheduling::Nodes& nodes(const Plan& plan);
  // Returns the node of `among` for the demand's next lease, or kNoNode if there is none.
  scheduling::NodeSlot choose(const Demand& demand, scheduling::NodeMask among,
                              const scheduling::NodeMask& preferred = {});
  // True if no other node can be a better place for the demand than this one, which has room.
  bool stays_here(const Demand& demand, const Plan& plan) const;

  Leases& leases_;
  const Parts& node_;
  const bool may_start_;  // processes may be started
  Now now_;
  std::map<RoomKey, Plan> plans_;
  std::map<std::pair<OwnerId, uint64_t>, Search> searches_;
  // Keyed by value, not by address, so that the order of messages is the same in every run.
  std::map<std::pair<LeaseQueue::Key, NodeId>, int> redirects_;
};

}  // namespace rt::node
