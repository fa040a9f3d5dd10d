// Names the holders of resources, for `rayctl debug`. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/debug/debug_text.h"
#include "common/resources/resource_set.h"

namespace rt::cli {

inline constexpr size_t kMostHolders = 5;  // One explanation names at most so many.

struct Holder {
  std::string name;
  ResourceSet holds;
};

// Everything that holds resources of the nodes themselves: running tasks, grouped by function,
// living actors, entrypoints of running jobs, and placement groups with what their bundles reserve.
std::vector<Holder> holders_of(const WaitingSnapshot& snapshot);
// Everything that runs in the bundles of one group, which is given by its binary id.
std::vector<Holder> holders_in_group(const WaitingSnapshot& snapshot, const std::string& group_id);
// The lines for those who hold any of the resources `scarce`, the largest holder first; at most
// kMostHolders.
std::vector<std::string> largest_holders(std::vector<Holder> holders,
                                         const std::vector<std::string>& scarce);
// Reads the resources in a row of the state API; amounts that are none are dropped.
ResourceSet resources_from_json(const api_json::Json& amounts);

}  // namespace rt::cli
