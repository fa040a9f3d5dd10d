// Checks, against what really runs in the processes of a node, that its rooms are respected: that
// of the node itself and those of the bundles that it holds.
#pragma once

#include "tests/sim/world.h"

namespace rt::sim {

class SimNode;
class SimWorker;

// The tasks that compute on this node fit into its rooms, and no GPU is shared out twice. Tasks
// that came back from get() do not count.
void check_computing(const SimNode& node);
// A task or an actor starts in the worker. One in a placement group needs a bundle of that group
// that this node holds and that the head has committed; and no task that needs a GPU shares a
// process with one that needs none.
void check_start(const World& world, const SimNode& node, const SimWorker& worker);
// The room of a bundle is kept until the last process that worked in it has been reaped.
void check_held_rooms(const SimNode& node);

}  // namespace rt::sim
