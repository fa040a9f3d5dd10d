// Node constraints: which nodes may run something, given that they have the resources. A
// constraint is affinity to one node, or conditions on labels.
#pragma once

#include <string>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/nodes.h"

namespace rt::scheduling {

struct AllowedNodes {
  enum class Verdict {
    kSome,      // `nodes` is not empty
    kNoneYet,   // No node matches; one that joins later may.
    kGone,      // Hard affinity to a node that is dead or unknown.
    kTooSmall,  // Hard affinity to a node whose total resources are too small.
  };
  Verdict verdict = Verdict::kNoneYet;
  // The nodes that may run it and whose total resources suffice, open or not.
  NodeMask nodes;
  NodeMask preferred;  // A part of `nodes`.
};

// False when every node is allowed.
bool constrains(const proto::NodeConstraint& constraint);
AllowedNodes allowed_nodes(const proto::NodeConstraint& constraint, const ResourceSet& request,
                           const Nodes& nodes);
// Describes a constraint for people: "a node where region is in (eu, us) and gpu exists".
std::string describe(const proto::NodeConstraint& constraint);
// describe() of a constraint that excludes nodes; empty for one that only prefers some, and for
// null.
std::string where_of(const proto::NodeConstraint* constraint);

}  // namespace rt::scheduling
