// Placement groups as rows, and as texts for people. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "observability/state/rows.h"

namespace rt::state {

// The state API's names: "RESCHEDULING", "STRICT_PACK".
std::string group_state_name(proto::GroupState state);
std::string strategy_name(const proto::GroupSpec& spec);

// Living nodes, from whose labels a row tells where a topology was placed.
using NodesById = std::map<NodeId, const proto::Node*>;
NodesById nodes_by_id(const google::protobuf::RepeatedPtrField<proto::Node>& nodes);
// Without `detail` the columns that are marked so are absent, because a group may have thousands of
// bundles.
Json group_row(const proto::GroupInfo& group, const NodesById& nodes, bool detail);

// Bundles with the same resources.
struct BundleShape {
  ResourceSet resources;
  int64_t count = 0;
};
// The shapes of a group's bundles, in the order of their first bundles. With `only_homeless` it
// leaves out bundles that a node holds.
std::vector<BundleShape> bundle_shapes(const proto::GroupInfo& group, bool only_homeless);
// Returns "{'CPU': 64.0} * 2, {'GPU': 1.0} * 1 (STRICT_PACK)": the bundles that no node holds.
// Names of resources are not made printable.
std::string homeless_text(const proto::GroupInfo& group);
// Returns "placement group 'name' (0123...)", or without a name "placement group 0123...".
std::string group_title(const proto::GroupInfo& group);

// Says why a removed group is gone: "it was removed: job 01000000 has ended".
std::string removal_text(const proto::GroupInfo& group);

// The indexes of the bundles that no node holds, and those on each node.
struct BundlePlaces {
  std::vector<int> homeless;
  std::map<NodeId, std::vector<int>> by_node;
};
BundlePlaces places_of(const proto::GroupInfo& group);
// Returns "bundle 3" or "bundles 0-2, 7 and 11 more": ranges, of which at most five are named.
std::string bundles_text(const std::vector<int>& indexes);

}  // namespace rt::state
