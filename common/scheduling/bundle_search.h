// One search for the nodes of a group's bundles: the amounts that are left on each node while the
// bundles are laid out. Private to bundles.cc and bundles_explain.cc.
#pragma once

#include <utility>
#include <vector>

#include "common/scheduling/bundles.h"

namespace rt::scheduling {

class BundleSearch {
 public:
  // All arguments must outlive the search.
  BundleSearch(const BundleSet& set, const BundleNodes& kept, const Nodes& nodes, Amount amount,
               const RefusedGpus& refused);

  // Finds nodes among `eligible` by the set's strategy. A search is used for one call.
  std::optional<BundleNodes> run(const NodeMask& eligible);

  // Returns the nodes that may and can take a bundle of this kind, by itself.
  NodeMask fitting(size_t kind) const;
  const NodeMask& matching(size_t kind) const { return needs_[kind].matching; }
  // Returns the nodes whose labels match all bundles that look for a node. With STRICT_PACK those
  // bundles may go to kept_together() of them only.
  NodeMask matching_all() const { return sum_of_wanting().matching; }
  // Returns all nodes, or the one that holds the other bundles; none if several do.
  NodeMask kept_together() const;
  // Returns the amounts that one node lacks for a bundle of this kind, or for all bundles that look
  // for a node.
  std::vector<std::pair<std::string, int64_t>> lacking(size_t kind, NodeSlot node) const;
  std::vector<std::pair<std::string, int64_t>> lacking_for_all(NodeSlot node) const;
  // The bundles that look for a node, those first that are hardest to place.
  const std::vector<size_t>& wanting() const { return wanting_; }

 private:
  struct Need {
    // Pairs of the number of a resource and its units.
    std::vector<std::pair<size_t, int64_t>> amounts;
    NodeMask matching;  // The nodes that match its label selector.
    GpuDemands gpus;    // One demand for each bundle that needs some.
    bool needs_gpu() const { return !gpus.empty(); }
  };

  void order();
  // Follows the devices of the nodes' GPUs, which only sets need that ask for parts of devices, or
  // that were refused.
  void lay_out_gpus(const RefusedGpus& refused);
  bool fits(const Need& need, NodeSlot node) const;
  void put(size_t bundle, NodeSlot node);
  void take_back(size_t bundle);
  const Need& need(size_t bundle) const { return needs_[set_.kind_of[bundle]]; }
  Need sum_of_wanting() const;
  // Returns how many of the bundles from `from` on in wanting() the node could take.
  int64_t capacity(size_t from, NodeSlot node) const;

  bool pack(const NodeMask& eligible);
  NodeSlot new_node(size_t at, const NodeMask& candidates) const;
  bool spread(const NodeMask& eligible);
  bool strict_pack(const NodeMask& eligible);
  bool strict_spread(const NodeMask& eligible);
  bool exact(const NodeMask& eligible);
  bool exact_from(size_t at, const NodeMask& eligible, int& budget);
  bool same_left(NodeSlot a, NodeSlot b, const Need& need) const;
  void reset();

  const BundleSet& set_;
  const Nodes& nodes_;
  NodeMask gpu_nodes_;
  std::vector<std::string> resources_;  // The names of the resources, by number.
  // The free amounts, by number of the resource and by slot.
  std::vector<std::vector<int64_t>> left_;
  std::vector<Need> needs_;      // The needs of the bundles, by kind.
  std::vector<GpuRoom> gpus_;    // By slot; empty if devices do not matter.
  std::vector<float> load_;      // The load of the nodes, by slot.
  std::vector<int> bundles_on_;  // How many bundles of the group are on each node, by slot.
  std::vector<size_t> wanting_;
  BundleNodes kept_, result_;
};

}  // namespace rt::scheduling
