// Nodes for the bundles of a placement group. A pure decision: it looks at the live nodes and
// returns a node for each bundle, or nothing when not all of them find room.
//
//   PACK           few nodes, as far as possible
//   SPREAD         different nodes as far as possible, then nodes take turns
//   STRICT_PACK    one node
//   STRICT_SPREAD  a node of its own for each bundle
//
// Besides, the node of a bundle matches the bundle's label selector, and for each label key of the
// topology strategy all nodes of the group have the same value of that label.
//
// A set that could be placed on the nodes in some other way may still find no room if it has more
// bundles than an exact search can take (PACK and SPREAD are bin packing).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/gpu_devices.h"
#include "common/scheduling/nodes.h"

namespace rt::scheduling {

// The demands of a group, prepared for many decisions.
struct BundleSet {
  // Bundles that ask for the same share one kind.
  struct Kind {
    ResourceSet resources;
    proto::LabelSelector selector;
  };
  explicit BundleSet(const proto::GroupSpec& spec);
  BundleSet() = default;

  size_t size() const { return kind_of.size(); }
  const ResourceSet& resources(size_t bundle) const { return kinds[kind_of[bundle]].resources; }

  proto::GroupSpec::Strategy strategy = proto::GroupSpec::PACK;
  std::vector<Kind> kinds;
  std::vector<size_t> kind_of;          // The kind of each bundle.
  std::optional<NodeId> soft_target;    // With STRICT_PACK: the preferred node.
  std::vector<std::string> same_label;  // The label keys whose values are the same on all nodes.
  // Equal for sets that differ in nothing that a decision looks at.
  std::string key;
};

// By bundle, a node; kNoNode: none. Empty: no bundle has one.
using BundleNodes = std::vector<NodeSlot>;

// The GPUs that bundles asked for together on a node which then refused them: their amounts seemed
// to be free, but not in such devices.
using RefusedGpus = std::map<NodeId, std::vector<GpuDemands>>;

// Returns a node for each bundle. Bundles that have a node in `kept` stay there, and their amounts
// are not free any more. With Amount::kTotal closed nodes count as well. No node gets demands at
// least as large as those that it has in `refused`.
std::optional<BundleNodes> assign_bundles(const BundleSet& set, const BundleNodes& kept,
                                          const Nodes& nodes, Amount amount,
                                          const RefusedGpus& refused = {});

// Why a set finds no room now, for people: "bundle 0 {'CPU': 64.0} fits on no node: the nearest,
// 127.0.0.1, lacks 60 CPU".
struct BundleShortage {
  bool infeasible = false;  // Whether they would find none even if nothing else ran on the nodes.
  std::string why;          // Empty if there is room.
};
BundleShortage explain_bundles(const BundleSet& set, const BundleNodes& kept, const Nodes& nodes,
                               const std::function<std::string(const NodeId&)>& name_of);
// Returns the first few hundred bytes of a text that is too long for one line of a log, and an
// ellipsis.
std::string shortened(std::string text);

}  // namespace rt::scheduling
