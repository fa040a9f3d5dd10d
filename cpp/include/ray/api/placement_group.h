// Placement groups: sets of bundles, each of which reserves resources on one node for the tasks and
// actors that name it.
//
//   ray::PlacementGroup group =
//       ray::CreatePlacementGroup({"", {{{"CPU", 1}}, {{"CPU", 1}}},
//       ray::PlacementStrategy::SPREAD});
//   group.Wait(60);
//   ray::Task(Plus).SetResource("CPU", 1).SetPlacementGroup(group, 0).Remote(1, 2);
//   ray::RemovePlacementGroup(group.GetID());
//
// A group ends with the program that created it. All of this needs a cluster: in local mode the
// functions throw RayException.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ray/api/runtime.h"

namespace ray {

// PACK: on as few nodes as possible; SPREAD: on as many. The STRICT ones fail rather than
// compromise: all bundles on one node, or each on a node of its own.
enum class PlacementStrategy {
  PACK = 0,
  SPREAD = 1,
  STRICT_PACK = 2,
  STRICT_SPREAD = 3,
  UNRECOGNIZED = -1
};

enum PlacementGroupState {
  PENDING = 0,   // It looks for nodes.
  PREPARED = 1,  // It has nodes, which is being recorded.
  CREATED = 2,
  REMOVED = 3,
  RESCHEDULING = 4,  // It has lost bundles with their nodes, and looks for others.
  UNRECOGNIZED = -1
};

struct PlacementGroupCreationOptions {
  std::string name;  // Unique in the namespace; empty: none.
  std::vector<std::unordered_map<std::string, double>> bundles;
  PlacementStrategy strategy = PlacementStrategy::PACK;
};

// A group as it was when this object was made. Copies are equal; none of them keeps the group
// alive.
class PlacementGroup {
 public:
  PlacementGroup() = default;
  explicit PlacementGroup(internal::GroupRecord record) : record_(std::move(record)) {}

  // The binary id; empty for an object that stands for no group.
  const std::string& GetID() const { return record_.id; }
  const std::string& GetName() const { return record_.name; }
  const std::vector<std::unordered_map<std::string, double>>& GetBundles() const {
    return record_.bundles;
  }
  PlacementGroupState GetState() const { return static_cast<PlacementGroupState>(record_.state); }
  PlacementStrategy GetStrategy() const { return static_cast<PlacementStrategy>(record_.strategy); }
  // Whether the object stands for no group: a lookup found none.
  bool Empty() const { return record_.id.empty(); }

  // Waits until the group is CREATED, at most that many seconds (-1: without limit). Returns false
  // after that time; throws RayException when the group was removed or does not exist.
  bool Wait(int timeout_seconds) const {
    if (Empty()) throw internal::RayException("An empty PlacementGroup cannot be waited for.");
    return internal::CurrentRuntime()->WaitForGroup(record_.id, timeout_seconds);
  }

  const internal::GroupRecord& record() const { return record_; }

 private:
  internal::GroupRecord record_;
};

// Returns without waiting for the group's nodes: see PlacementGroup::Wait(). Throws RayException
// for options that can never be met and for a name that is taken.
inline PlacementGroup CreatePlacementGroup(const PlacementGroupCreationOptions& options) {
  internal::GroupRecord record;
  record.name = options.name;
  record.bundles = options.bundles;
  record.strategy = static_cast<int>(options.strategy);
  return PlacementGroup(internal::CurrentRuntime()->CreateGroup(std::move(record)));
}

// Ends the group and whatever runs in it. Does nothing when it has ended already.
inline void RemovePlacementGroup(const std::string& placement_group_id) {
  internal::CurrentRuntime()->RemoveGroup(placement_group_id);
}

// All groups of the cluster, also those that were removed not long ago.
inline std::vector<PlacementGroup> GetAllPlacementGroups() {
  std::vector<PlacementGroup> groups;
  for (internal::GroupRecord& record : internal::CurrentRuntime()->Groups())
    groups.emplace_back(std::move(record));
  return groups;
}

// The group with this binary id, or this name in the job's namespace. Empty when there is none.
inline PlacementGroup GetPlacementGroupById(const std::string& id) {
  return PlacementGroup(internal::CurrentRuntime()->FindGroup(id));
}
inline PlacementGroup GetPlacementGroup(const std::string& name) {
  return PlacementGroup(internal::CurrentRuntime()->FindNamedGroup(name));
}

}  // namespace ray
