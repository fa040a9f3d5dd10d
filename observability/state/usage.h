// The use of the resources of nodes. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/proto/common.pb.h"

namespace rt::state {

// Amounts of one resource. What bundles of placement groups reserve counts as used only as far as
// something runs with it: `used` includes `reserved_used`, but not all of `reserved`.
struct Usage {
  double used = 0, total = 0;
  double reserved = 0, reserved_used = 0;
};
// Maps each resource to its usage, summed over the nodes.
std::map<std::string, Usage> usage_of(const std::vector<const proto::Node*>& nodes);
// Returns "2.0/6.0 CPU (1.0 used of 3.0 reserved in placement groups)"; without a reservation
// "2.0/6.0 CPU".
std::string usage_text(const std::string& resource, const Usage& usage);

}  // namespace rt::state
