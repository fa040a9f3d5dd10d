// Which nodes may run a task or an actor beside having the resources: affinity to one node, and
// conditions on labels. The head uses it for actors, a node-manager for leases; both pass the live
// nodes as they know them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"

namespace rt {

using Labels = google::protobuf::Map<std::string, std::string>;

// A live node, as a constraint sees it; views outlive the question.
struct NodeFacts {
  std::string_view id;  // binary
  const Labels* labels = nullptr;
  const ResourceSet* total = nullptr;
};

struct AllowedNodes {
  enum class Verdict {
    kSome,      // `nodes` is not empty
    kNoneYet,   // nobody matches: a node that does may join
    kGone,      // hard affinity to a node that is dead or unknown
    kTooSmall,  // hard affinity to a node that never has the resources
  };
  Verdict verdict = Verdict::kNoneYet;
  std::vector<int> nodes;  // indexes of those that may run it and have the resources in all, the
                           // preferred ones first
  size_t preferred = 0;    // how many those are
};

// Whether the constraint says anything.
bool constrains(const proto::NodeConstraint& constraint);
bool matches(const proto::LabelSelector& selector, const Labels& labels);
AllowedNodes allowed_nodes(const proto::NodeConstraint& constraint, const ResourceSet& request,
                           std::span<const NodeFacts> nodes);
// For people: "a node where region is in (eu, us) and gpu exists".
std::string describe(const proto::NodeConstraint& constraint);

}  // namespace rt
