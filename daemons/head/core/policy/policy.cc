#include "daemons/head/core/policy/policy.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::head {

Result<PlacementPolicy> policy_of(const std::string& scheduling_strategy) {
  if (scheduling_strategy.empty() || scheduling_strategy == "DEFAULT") return &pack_policy;
  if (scheduling_strategy == "SPREAD") return &spread_policy;
  return make_error(
      Code::kUnsupported,
      fmt::format("scheduling strategy '{}' is not implemented for actors; use DEFAULT or SPREAD",
                  scheduling_strategy));
}

double utilisation(const NodeState& node, const ResourceSet& request) {
  double worst = 0;
  auto look_at = [&](const std::string& name) {
    int64_t total = node.total.units(name);
    if (total <= 0) return;
    int64_t used = total - node.available.units(name) + node.reserved_sum.units(name);
    used = std::max(used, node.actors_placed.units(name));
    worst = std::max(worst, static_cast<double>(used) / static_cast<double>(total));
  };
  for (const char* name : {"CPU", "GPU", "memory"}) look_at(name);
  for (const auto& [name, units] : request.all()) look_at(name);
  return worst;
}

}  // namespace rt::head
