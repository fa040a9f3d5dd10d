#include "common/scheduling/policy.h"

#include <algorithm>

namespace rt::scheduling {
namespace {

// Keeps work near the asker up to a threshold of utilisation, then sends it to the fullest node, so
// that few nodes are used and distances are short. Beyond the threshold the least utilised node is
// taken.
double default_cost(const Candidate& node, const Request& request) {
  if (node.utilisation > request.spread_threshold) return node.utilisation;
  // This lies below the cost of every node beyond the threshold, which is positive.
  constexpr double kBelowAll = -2;
  return node.near ? kBelowAll : -node.utilisation;
}

// Lets nodes take turns. Nodes with fewer actors come first, because actors stay; a new actor may
// begin where another one has ended.
double spread_cost(const Candidate& node, const Request&) { return node.actors; }

constexpr Policy kPolicies[] = {
    {proto::DEFAULT, default_cost, false},
    {proto::SPREAD, spread_cost, true},
};
// A strategy without a line would be accepted, and place things as DEFAULT does.
constexpr bool has_policy(int strategy) {
  return std::any_of(std::begin(kPolicies), std::end(kPolicies),
                     [&](const Policy& policy) { return int{policy.strategy} == strategy; });
}
constexpr bool all_have_policies() {
  for (int strategy = 0; strategy < proto::SchedulingStrategy_ARRAYSIZE; ++strategy) {
    if (!has_policy(strategy)) return false;
  }
  return true;
}
static_assert(all_have_policies(), "a value of proto::SchedulingStrategy has no line in kPolicies");

// Keeps the part of `nodes` that is in `wanted`, unless there is none.
void prefer(NodeMask& nodes, const NodeMask& wanted) {
  NodeMask both = nodes & wanted;
  if (!both.empty()) nodes = std::move(both);
}

}  // namespace

const Policy& policy_of(proto::SchedulingStrategy strategy) {
  const auto* at = std::find_if(std::begin(kPolicies), std::end(kPolicies),
                                [&](const Policy& policy) { return policy.strategy == strategy; });
  return at == std::end(kPolicies) ? kPolicies[0] : *at;
}

NodeSlot choose(const Nodes& nodes, const Request& request, NodeMask fitting,
                const NodeMask& preferred) {
  prefer(fitting, preferred);
  if (request.resources.units("GPU") == 0) {
    NodeMask without_gpu = fitting;
    without_gpu -= nodes.with_any("GPU");
    prefer(fitting, without_gpu);
  }
  const NodeSlot lowest = fitting.first();
  if (lowest == kNoNode || fitting.first(lowest + 1) == kNoNode) return lowest;

  const Policy& policy = policy_of(request.strategy);
  const std::vector<float> utilisation = nodes.utilisations(request.resources);
  NodeSlot best = kNoNode;
  double best_cost = 0;
  auto look_at = [&](NodeSlot slot) {
    const bool near = slot == request.near;
    const double cost =
        policy.cost({utilisation[static_cast<size_t>(slot)], nodes.actors(slot), near}, request);
    if (best != kNoNode && cost > best_cost) return;
    if (best != kNoNode && cost == best_cost && !(near && !policy.takes_turns)) return;
    best = slot;
    best_cost = cost;
  };
  // A policy that takes turns begins behind the last node and comes back to it at the end.
  const NodeSlot start = policy.takes_turns ? request.last + 1 : 0;
  for (NodeSlot slot = fitting.first(start); slot != kNoNode; slot = fitting.first(slot + 1))
    look_at(slot);
  for (NodeSlot slot = lowest; slot != kNoNode && slot < start; slot = fitting.first(slot + 1))
    look_at(slot);
  return best;
}

}  // namespace rt::scheduling
