#include "worker/core/locality.h"

#include <algorithm>
#include <map>

namespace rt::worker {

std::optional<PreferredNode> preferred_node(std::vector<const ObjectEntry*> args,
                                            const NodeId& here, int64_t store_bytes) {
  // Cheap and nearly always enough: no more than all of it can be missing here.
  int64_t at_most = 0;
  for (const ObjectEntry* arg : args) at_most += arg->size;
  if (at_most <= store_bytes / 2) return std::nullopt;
  std::sort(args.begin(), args.end());
  args.erase(std::unique(args.begin(), args.end()), args.end());
  int64_t total = 0, missing = 0;
  std::map<NodeId, int64_t> bytes_at;
  for (const ObjectEntry* arg : args) {
    total += arg->size;
    bool is_here = false;
    for (const ObjectLocation& location : arg->locations) {
      is_here |= location.node == here;
      bytes_at[location.node] += arg->size;
    }
    if (!is_here) missing += arg->size;
  }
  bytes_at.erase(here);
  if (missing <= store_bytes / 2 || bytes_at.empty()) return std::nullopt;
  auto most = std::max_element(bytes_at.begin(), bytes_at.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  return PreferredNode{most->first, total <= store_bytes};
}

}  // namespace rt::worker
