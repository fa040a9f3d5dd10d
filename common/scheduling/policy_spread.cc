// The strategy SPREAD: nodes take turns. Those with fewer actors come first, because actors stay:
// where one has ended, the next may begin.
#include "common/scheduling/policy.h"

namespace rt::scheduling {

double spread_cost(const Candidate& node, const Request&) { return node.actors; }

}  // namespace rt::scheduling
