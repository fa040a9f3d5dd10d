// Asks owners to return leases when something has waited for lease_revoke_after_ms: actors, bundles
// of placement groups, and demands. Only leases in the same room are of use.
#pragma once

#include <optional>
#include <vector>

#include "daemons/node_manager/core/leases.h"
#include "daemons/node_manager/core/reservation.h"

namespace rt::node {

class Leases::Revocation {
 public:
  Revocation(Leases& leases, Now now) : leases_(leases), node_(leases.node_), now_(now) {}

  void run();

 private:
  // The needs of something that waits: `parts` together, whose sum is `sum`.
  struct Wanted {
    ResourceSet sum;
    std::vector<ResourceSet> parts;
    // For a demand: a waiter that holds leases itself only takes from demands that hold at least
    // two more; otherwise two waiters would keep taking from each other.
    const Demand* waiter = nullptr;
  };
  struct Plan {
    std::vector<Lease*> victims;
    bool suffices = false;  // with them the wanted will fit
  };

  void for_demand(const Demand& demand);
  // Chooses victims from the demands that hold most.
  Plan plan(const RoomKey& room, const Wanted& wanted);
  Lease* next_victim(const RoomKey& room, const Wanted& wanted, const Prospect& expected,
                     const std::vector<Lease*>& chosen);
  void revoke(const Plan& plan);

  Leases& leases_;
  const Parts& node_;
  Now now_;
};

}  // namespace rt::node
