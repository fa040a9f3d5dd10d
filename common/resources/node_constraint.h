// Node constraints: which nodes may run a task or an actor, given that they have the resources. A
// constraint is affinity to one node, or conditions on labels. The head applies it to actors and a
// node-manager to leases; both pass the live nodes they know of.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt {

using Labels = google::protobuf::Map<std::string, std::string>;

// A live node as a constraint sees it. What it refers to must outlive the call.
struct NodeFacts {
  std::string_view id;  // binary
  const Labels* labels = nullptr;
  const ResourceSet* total = nullptr;
};

struct AllowedNodes {
  enum class Verdict {
    kSome,      // `nodes` is not empty
    kNoneYet,   // no node matches; one that joins later may
    kGone,      // hard affinity to a node that is dead or unknown
    kTooSmall,  // hard affinity to a node whose total resources are too small
  };
  Verdict verdict = Verdict::kNoneYet;
  // Indexes of the nodes that may run it and whose total resources suffice, preferred ones first.
  std::vector<int> nodes;
  size_t preferred = 0;  // number of preferred ones
};

// False when every node is allowed.
bool constrains(const proto::NodeConstraint& constraint);
bool matches(const proto::LabelSelector& selector, const Labels& labels);
AllowedNodes allowed_nodes(const proto::NodeConstraint& constraint, const ResourceSet& request,
                           std::span<const NodeFacts> nodes);
// Describes a constraint for people: "a node where region is in (eu, us) and gpu exists".
std::string describe(const proto::NodeConstraint& constraint);
// The same when a constraint excludes nodes; empty when it only prefers some, and for null.
std::string where_of(const proto::NodeConstraint* constraint);

}  // namespace rt
