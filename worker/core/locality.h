// Where a task should run for the sake of its arguments, when they are too large to be moved
// lightly, or found no room. Pure: the caller knows the arguments and the size of its node's object
// store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "worker/core/object_entry.h"
#include "worker/core/submitter.h"

namespace rt::worker {

// Whether a task may run where its arguments are: neither the program nor a placement group says
// where.
bool may_prefer_node(const Task& task);
// The same for a task whose arguments found no room where it was to run: it is not cancelled, and
// was not sent there before.
bool may_move_to_arguments(const Task& task);
// The class of such tasks as this one at the node: only there as long as the node exists or, with
// `others_too`, elsewhere as well if it has no room. The class has one more user.
SchedulingClass* class_at(Submitter& submitter, const Task& task, const NodeId& node,
                          bool others_too);

struct PreferredNode {
  NodeId node;
  // Another node will do when this one has no room for the task. False when the arguments cannot
  // be in the store of the owner's node together.
  bool others_too = true;
};

// To bring fewer bytes than this to a node takes about as long as to ask another node for a worker.
inline constexpr int64_t kLightBytes = 1 << 20;

// `args` are the arguments in shared memory; one that occurs twice counts once. Returns the node
// that holds most of their bytes, unless those that are not on `here`, the owner's node, are light.
std::optional<PreferredNode> preferred_node(std::vector<const ObjectEntry*> args,
                                            const NodeId& here, int64_t store_bytes);

// The node, among those that may run the task, that holds most of the arguments' bytes. For a task
// whose arguments found no room where it was to run.
std::optional<NodeId> node_beside(std::vector<const ObjectEntry*> args,
                                  const std::function<bool(const NodeId&)>& may_run);

}  // namespace rt::worker
