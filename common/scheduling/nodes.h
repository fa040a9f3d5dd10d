// The live nodes among which a scheduling decision chooses. A process that decides keeps one
// `Nodes` and tells it of each change, so that a decision does not describe the nodes anew.
//
// A decision among thousands of nodes takes microseconds because it does not look at each of them:
// labels are found in an index (label -> nodes), and each resource has a column of its own that
// lists the nodes that have it, so that a condition is one pass over dense memory.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/node_mask.h"

namespace rt::scheduling {

using Labels = google::protobuf::Map<std::string, std::string>;

// The amounts of a node that a request can be compared with.
enum class Amount {
  kTotal,         // All that the node has.
  kFree,          // The amount that is free now.
  kBesideActors,  // The amount that is free once the tasks that run there have ended.
};

// How much of the fullest of CPU, memory and the requested resources would be in use, as a share of
// the total, if a node were given `request`: 0 is idle, 1 full, and debt goes beyond.
double utilisation(const ResourceSet& total, const ResourceSet& free, const ResourceSet& request);

class Nodes {
 public:
  // Adds a node, whose total is free, or replaces what is known of its labels and total. Returns
  // its slot.
  NodeSlot put(const NodeId& id, const Labels& labels, const ResourceSet& total);
  void remove(const NodeId& id);
  // `free` may be negative, when a task that was blocked took back what had been lent.
  void set_free(NodeSlot node, const ResourceSet& free);
  // `held` is what the actors of the node hold. `placed`, at least that, is what they asked for in
  // order to be placed, and counts as load: many actors hold nothing.
  void set_actors(NodeSlot node, const ResourceSet& held, const ResourceSet& placed, int actors);
  // A closed node takes no new work, though it is alive and counts for what could ever run.
  void set_open(NodeSlot node, bool open);

  NodeSlot find(const NodeId& id) const;  // Returns kNoNode if there is no such node.
  const NodeId& id(NodeSlot node) const { return nodes_[static_cast<size_t>(node)].id; }
  int actors(NodeSlot node) const { return nodes_[static_cast<size_t>(node)].actors; }
  size_t slots() const { return nodes_.size(); }
  size_t size() const { return by_id_.size(); }

  // ---- conditions
  const NodeMask& all() const { return all_; }
  const NodeMask& open() const { return open_; }
  // The nodes that have `request` in full.
  NodeMask having(const ResourceSet& request, Amount amount) const;
  // Whether no node is large enough, even when nothing runs on it.
  bool infeasible(const ResourceSet& request) const {
    return having(request, Amount::kTotal).empty();
  }
  NodeMask matching(const proto::LabelSelector& selector) const;
  // The nodes that have some of the resource.
  NodeMask with_any(const std::string& resource) const;

  // By slot, how much of the resource each node has; 0 where there is no node.
  std::vector<int64_t> amounts(const std::string& resource, Amount amount) const;
  // The values of a label, each with the nodes that have it, in the order of the values.
  std::vector<std::pair<std::string, NodeMask>> by_value(const std::string& label) const;
  const ResourceSet& total(NodeSlot node) const { return nodes_[static_cast<size_t>(node)].total; }

  // By slot, the utilisation() of each node, where what actors were placed with counts as used.
  std::vector<float> utilisations(const ResourceSet& request) const;

 private:
  struct Node {
    NodeId id;
    Labels labels;
    ResourceSet total;
    int actors = 0;
    bool used = false;  // If false, the slot is free.
  };
  // The amounts that one node has of one resource. `load` is the larger of what is in use and what
  // actors were placed with, as a share of the total.
  struct Share {
    NodeSlot node;
    float per_unit;  // 1 / total
    int64_t total, free, held, placed;
    float load() const;
    int64_t amount(Amount which) const;
  };
  // The shares are sorted by slot.
  using Column = std::vector<Share>;
  struct LabelKey {
    std::vector<NodeSlot> nodes;  // The nodes that have the label; ascending.
    std::unordered_map<std::string, std::vector<NodeSlot>> by_value;
  };

  static Share* find_in(Column& column, NodeSlot node);
  const Column* column(const std::string& resource) const;
  void index(NodeSlot slot);
  void unindex(NodeSlot slot);

  std::vector<Node> nodes_;  // By slot.
  std::vector<NodeSlot> unused_;
  std::unordered_map<NodeId, NodeSlot> by_id_;
  NodeMask all_, open_;
  std::unordered_map<std::string, Column> columns_;
  std::unordered_map<std::string, LabelKey> labels_;
};

}  // namespace rt::scheduling
