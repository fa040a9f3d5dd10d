// Checks what must be true, at each event, of the actors that a head has in placement groups.
#pragma once

#include <set>

#include "daemons/head/core/head_core.h"
#include "tests/sim/group_ledger.h"

namespace rt::sim {

// The actors that the head has put into this bundle, and the next one, take no more than it has.
void check_seats(const head::HeadView& head, const GroupId& group, int bundle, const ActorId& next);

// The groups that a head has removed.
class RemovedGroups {
 public:
  // To be called after each event. When the head removes a group, its actors are dead for it at
  // once.
  void look(const head::HeadView& head, const GroupLedger& groups);

 private:
  std::set<GroupId> known_;
  bool has_looked_ = false;  // Before that, the head has read from its disk what was removed.
};

}  // namespace rt::sim
