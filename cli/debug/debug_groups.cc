#include "cli/debug/debug_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/debug/debug_holders.h"
#include "cli/terminal/output.h"
#include "common/base/ids.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"
#include "observability/state/groups.h"

namespace rt::cli {
namespace {

constexpr size_t kMostTableRows = 50;

const proto::GroupInfo* find_group(const WaitingSnapshot& snapshot, const std::string& id) {
  auto it = std::find_if(snapshot.groups.begin(), snapshot.groups.end(),
                         [&](const auto& group) { return group.spec().group_id() == id; });
  return it == snapshot.groups.end() ? nullptr : &*it;
}

const proto::Node* find_node(const WaitingSnapshot& snapshot, const std::string& id) {
  const auto& nodes = snapshot.status.nodes();
  auto it = std::find_if(nodes.begin(), nodes.end(),
                         [&](const auto& node) { return node.node_id() == id; });
  return it == nodes.end() ? nullptr : &*it;
}

std::string node_title(const WaitingSnapshot& snapshot, const std::string& id) {
  const proto::Node* node = find_node(snapshot, id);
  const std::string short_id = to_hex(id).substr(0, 12);
  return node ? fmt::format("{} ({})", node->name().empty() ? node->ip() : node->name(), short_id)
              : "node " + short_id;
}

std::string reason_of(const proto::GroupInfo& group) {
  std::string why = group.why().empty() ? "the head looks for nodes" : group.why();
  if (group.infeasible())
    why += "; the living nodes are too small or too few: it waits until one joins";
  return why;
}

// Returns "bundles 0-2 on east (0123456789ab), bundle 3 on west (...)".
std::string held_bundles(const WaitingSnapshot& snapshot, const state::BundlePlaces& places) {
  constexpr size_t kMostNodes = 4;
  std::string text;
  size_t named = 0;
  for (const auto& [node, indexes] : places.by_node) {
    if (named == kMostNodes) {
      text += fmt::format(", and others on {} more nodes", places.by_node.size() - named);
      break;
    }
    text += fmt::format("{}{} on {}", named++ ? ", " : "", state::bundles_text(indexes),
                        node_title(snapshot, node.binary()));
  }
  return text;
}

// Returns the names of the resources that the homeless bundles want.
std::vector<std::string> wanted_names(const proto::GroupInfo& group) {
  std::map<std::string, bool> names;
  for (const auto& shape : state::bundle_shapes(group, true)) {
    for (const auto& [name, units] : shape.resources.all()) names[name] = true;
  }
  std::vector<std::string> out;
  for (const auto& [name, wanted] : names) out.push_back(name);
  return out;
}

std::string bundle_name(const proto::Demand& demand) {
  return demand.bundle_index() < 0 ? "any bundle" : fmt::format("bundle {}", demand.bundle_index());
}

// Returns why a demand waits whose group is not complete; empty if its bundle is there.
std::string why_bundle_is_absent(const proto::Demand& demand, const proto::GroupInfo* group) {
  if (!group)
    return "the head does not know this placement group: it was removed, or its registration is "
           "still on its way";
  switch (group->state()) {
    case proto::GROUP_REMOVED:
      return state::removal_text(*group) + "; they wait until they are cancelled";
    case proto::GROUP_PENDING: return "the group waits for nodes itself: " + reason_of(*group);
    case proto::GROUP_PREPARED: return "the group is placed, and its record is being written";
    default: break;
  }
  const state::BundlePlaces places = state::places_of(*group);
  const bool lost = demand.bundle_index() < 0
                        ? places.by_node.empty()
                        : std::find(places.homeless.begin(), places.homeless.end(),
                                    demand.bundle_index()) != places.homeless.end();
  if (!lost) return "";
  return fmt::format("the group lost {} with {}, and looks for others: {}",
                     state::bundles_text(places.homeless),
                     places.homeless.size() == 1 ? "its node" : "their nodes", reason_of(*group));
}

struct TableRow {
  std::string node_id;
  const proto::GroupInfo* group;
  std::vector<int> indexes;
  ResourceSet resources;
};

std::vector<TableRow> table_rows(const WaitingSnapshot& snapshot) {
  std::vector<TableRow> rows;
  for (const auto& group : snapshot.groups) {
    if (group.state() == proto::GROUP_REMOVED) continue;
    const state::BundlePlaces places = state::places_of(group);
    for (const auto& [node, indexes] : places.by_node) {
      ResourceSet sum;
      for (int index : indexes)
        sum.add(ResourceSet::from_proto(group.spec().bundles(index).resources()));
      rows.push_back({node.binary(), &group, indexes, std::move(sum)});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TableRow& a, const TableRow& b) { return a.node_id < b.node_id; });
  return rows;
}

}  // namespace

void explain_groups(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  const std::vector<Holder> holders = holders_of(snapshot);
  for (const auto& group : snapshot.groups) {
    if (group.state() == proto::GROUP_CREATED || group.state() == proto::GROUP_REMOVED) continue;
    Explanation one{
        1, fmt::format("{} {}", state::group_title(group), state::homeless_text(group)), "", {}};
    const state::BundlePlaces places = state::places_of(group);
    if (group.state() == proto::GROUP_PREPARED) {
      one.why =
          "its nodes reserve the bundles: the head writes its record (slow or full disk of "
          "the head, if this lasts)";
    } else if (group.state() == proto::GROUP_RESCHEDULING) {
      const std::string held = held_bundles(snapshot, places);
      one.why = fmt::format("lost {} with {}{}; {}", state::bundles_text(places.homeless),
                            places.homeless.size() == 1 ? "its node" : "their nodes",
                            held.empty() ? "" : ", and still has " + held, reason_of(group));
    } else {
      one.why = reason_of(group);
    }
    if (group.state() != proto::GROUP_PREPARED && !group.infeasible())
      one.holders = largest_holders(holders, wanted_names(group));
    all->push_back(std::move(one));
  }
}

Explanation explain_in_group(const WaitingSnapshot& snapshot, const proto::Demand& demand,
                             std::string what) {
  const proto::GroupInfo* group = find_group(snapshot, demand.group_id());
  Explanation one{demand.count(),
                  fmt::format("{} in {} of {}", what, bundle_name(demand),
                              group ? state::group_title(*group)
                                    : "placement group " + to_hex(demand.group_id())),
                  why_bundle_is_absent(demand, group),
                  {}};
  if (!one.why.empty()) return one;
  one.why = demand.waits_for().empty() ? "what the bundle reserves is in use: " +
                                             held_bundles(snapshot, state::places_of(*group))
                                       : "waits for " + demand.waits_for();
  std::vector<std::string> names;
  const ResourceSet wanted = ResourceSet::from_proto(demand.resources());
  for (const auto& [name, units] : wanted.all()) names.push_back(name);
  one.holders = largest_holders(holders_in_group(snapshot, demand.group_id()), names);
  return one;
}

std::string group_table(const WaitingSnapshot& snapshot) {
  const std::vector<TableRow> rows = table_rows(snapshot);
  if (rows.empty()) return "";
  std::vector<Words> cells = {{"NODE", "PLACEMENT GROUP", "NAME", "BUNDLES", "RESERVED"}};
  for (size_t i = 0; i < std::min(rows.size(), kMostTableRows); ++i) {
    const TableRow& row = rows[i];
    cells.push_back({printable(node_title(snapshot, row.node_id)),
                     to_hex(row.group->spec().group_id()), printable(row.group->spec().name()),
                     state::bundles_text(row.indexes), printable(row.resources.to_string())});
  }
  std::string text = "Placement groups hold:\n" + table(cells);
  if (rows.size() > kMostTableRows)
    text += fmt::format("... {} more (`{} list placement-groups --detail` has all)\n",
                        rows.size() - kMostTableRows, program_name());
  return text;
}

api_json::Json group_table_json(const WaitingSnapshot& snapshot) {
  api_json::Json out = api_json::Json::array();
  for (const TableRow& row : table_rows(snapshot)) {
    const proto::Node* node = find_node(snapshot, row.node_id);
    out.push_back({{"node_id", to_hex(row.node_id)},
                   {"node_ip", node ? api_json::Json(node->ip()) : api_json::Json()},
                   {"placement_group_id", to_hex(row.group->spec().group_id())},
                   {"name", row.group->spec().name()},
                   {"bundles", row.indexes},
                   {"resources", api_json::amounts_json(row.resources)}});
  }
  return out;
}

}  // namespace rt::cli
