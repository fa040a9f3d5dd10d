#include "observability/state/lineage.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace rt::state {
namespace {

struct Node {
  std::string name, key, type;
  int64_t at_ms = 0;                      // 0 if not known.
  std::map<std::string, int64_t> states;  // The states of this node alone, without its children.
  Json link;
  Node* parent = nullptr;
  std::vector<Node*> children;
};

int64_t time_of(const Json& row) {
  for (const char* column : {"creation_time_ms", "start_time_ms"}) {
    if (row.contains(column) && row[column].is_number_integer()) return row[column].get<int64_t>();
  }
  return 0;
}

// Builds the tree and owns its nodes. They are in a deque, which keeps their addresses valid.
class Tree {
 public:
  explicit Tree(const std::vector<Json>& rows) {
    for (const Json& row : rows) add(row);
    for (Node& node : nodes_) {
      if (node.parent) continue;
      auto parent = tasks_.find(parents_[&node]);
      if (parent != tasks_.end() && !is_above(&node, parent->second)) node.parent = parent->second;
    }
    for (Node& node : nodes_) (node.parent ? node.parent->children : top_).push_back(&node);
  }

  Json json() { return grouped(top_, nullptr); }

 private:
  void add(const Json& row) {
    std::string id = text_of(row, "task_id");
    auto known = tasks_.find(id);
    // This is another attempt of a known task.
    if (known != tasks_.end()) {
      ++known->second->states[text_of(row, "state")];
      return;
    }
    Node& node = nodes_.emplace_back();
    node.name = text_of(row, "name");
    node.key = id;
    node.type = text_of(row, "type");
    node.at_ms = time_of(row);
    node.link = {{"type", "task"}, {"id", id}};
    ++node.states[text_of(row, "state")];
    tasks_[id] = &node;
    parents_[&node] = text_of(row, "parent_task_id");
    std::string actor = text_of(row, "actor_id");
    if (actor.empty()) return;
    node.parent = actor_of(actor, text_of(row, "func_or_class_name"), node.at_ms);
    // The actor stands below the task that submitted its creation.
    if (node.type == "ACTOR_CREATION_TASK") parents_[node.parent] = parents_[&node];
  }

  Node* actor_of(const std::string& id, const std::string& function, int64_t at_ms) {
    Node*& actor = actors_[id];
    if (!actor) {
      actor = &nodes_.emplace_back();
      actor->name = function.substr(0, function.find('.'));
      actor->key = id;
      actor->type = "ACTOR";
      actor->link = {{"type", "actor"}, {"id", id}};
    }
    if (at_ms && (!actor->at_ms || at_ms < actor->at_ms)) actor->at_ms = at_ms;
    return actor;
  }

  // Parent ids come from user processes and are not checked: they could form a cycle.
  static bool is_above(const Node* node, const Node* of) {
    for (; of; of = of->parent) {
      if (of == node) return true;
    }
    return false;
  }

  static Json json_of(const Node& node, std::map<std::string, int64_t> states, Json children) {
    return {{"name", node.name},
            {"key", node.key},
            {"type", node.type},
            {"timestamp", node.at_ms ? Json(node.at_ms) : Json()},
            {"state_counts", std::move(states)},
            {"link", node.link},
            {"children", std::move(children)}};
  }

  // The JSON of `siblings`, the oldest first, with equal names grouped. Adds their counts to `sum`.
  Json grouped(std::vector<Node*>& siblings, std::map<std::string, int64_t>* sum) {
    std::stable_sort(siblings.begin(), siblings.end(), [](const Node* a, const Node* b) {
      return std::tie(a->at_ms, a->key) < std::tie(b->at_ms, b->key);
    });
    std::map<std::string, size_t> alike;
    for (const Node* node : siblings) ++alike[node->name];
    std::map<std::string, std::pair<Node, Json>> groups;
    std::vector<std::string> order;  // The names in the order of their first sibling.
    for (Node* node : siblings) {
      std::map<std::string, int64_t> states = node->states;
      Json children = grouped(node->children, &states);
      auto [it, is_first] = groups.try_emplace(node->name);
      auto& [group, members] = it->second;
      if (is_first) {
        order.push_back(node->name);
        group.name = group.key = node->name;
        group.type = "GROUP";
        group.at_ms = node->at_ms;
        members = Json::array();
      }
      for (const auto& [state, count] : states) group.states[state] += count;
      members.push_back(json_of(*node, std::move(states), std::move(children)));
    }
    Json out = Json::array();
    for (const std::string& name : order) {
      auto& [group, members] = groups[name];
      if (sum) {
        for (const auto& [state, count] : group.states) (*sum)[state] += count;
      }
      if (alike[name] == 1) {
        out.push_back(std::move(members[0]));
      } else {
        out.push_back(json_of(group, group.states, std::move(members)));
      }
    }
    return out;
  }

  std::deque<Node> nodes_;
  std::map<std::string, Node*> tasks_, actors_;  // By id.
  std::map<const Node*, std::string> parents_;   // The task ids of parents.
  std::vector<Node*> top_;
};

}  // namespace

Json lineage_of(const std::vector<Json>& rows) { return Tree(rows).json(); }

}  // namespace rt::state
