// The names of the functions and classes that wait, for `rayctl debug`. A demand has the name of
// only one of those that wait for the same resources; the rows of tasks have all of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/debug/debug_text.h"
#include "common/resources/resource_set.h"

namespace rt::cli {

// Names the functions and classes that demands wait for. The snapshot must outlive the object.
class WaitingFunctions {
 public:
  explicit WaitingFunctions(const WaitingSnapshot& snapshot);

  // Returns all functions and classes of a demand of the snapshot, with the number of their tasks,
  // if the rows show more than one: "make (2), read (1)". Otherwise returns the name in the demand.
  //
  // Rows do not tell for which bundle, node or turn a task waits. Where several demands differ in
  // this alone, each gets the functions that no other one names, without numbers: "make or read".
  std::string of(const proto::Demand& demand) const;

 private:
  // The id of a placement group in hex, or ""; resources; whether it is about actors in a group.
  // In a group the demands of actors come from the head and the others from nodes, with other
  // reasons, so that they are never added together. Outside of groups they are.
  using Key = std::tuple<std::string, ResourceSet, bool>;
  // A function, and the name that its tasks have.
  using Function = std::pair<std::string, std::string>;
  Key key_of(const proto::Demand& demand) const;

  // The actors that wait in groups: the group in hex, and the actor's class.
  std::set<std::pair<std::string, std::string>> waiting_actors_;
  std::map<Key, std::vector<const proto::Demand*>> demands_;
  std::map<Key, std::map<Function, int64_t>> tasks_;  // How many tasks each has.
};

}  // namespace rt::cli
