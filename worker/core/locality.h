// Where a task should run for the sake of its arguments, when they are too large to be moved
// lightly. Pure: the caller knows the arguments and the size of its node's object store.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/core/object_entry.h"

namespace rt::worker {

struct PreferredNode {
  NodeId node;
  // Another node will do when this one has no room for the task. False when the arguments cannot
  // be in the store of the owner's node together.
  bool others_too = true;
};

// `args` are the arguments in shared memory; one that occurs twice counts once. Returns the node
// that holds most of their bytes, when more than half of the store of `here`, the owner's node,
// would be needed for those that are elsewhere. Two such tasks could not be there side by side.
std::optional<PreferredNode> preferred_node(std::vector<const ObjectEntry*> args,
                                            const NodeId& here, int64_t store_bytes);

}  // namespace rt::worker
