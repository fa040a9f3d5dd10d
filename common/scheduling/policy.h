// Scheduling policies: which of the nodes that may and can take something should. Tasks, actors and
// entrypoints of jobs are placed by the same ones.
//
// A decision has two steps. Conditions (nodes.h, constraint.h) leave the nodes where it fits; then
// choose() takes the best of them by preferences that no policy changes, and by the policy's cost.
//
// To add a policy: a value of proto::SchedulingStrategy, whose name is what programs write, and in
// policy.cc its cost and its line in the table. Owners of tasks look at the table, too.
#pragma once

#include "common/proto/common.pb.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/nodes.h"

namespace rt::scheduling {

// A decision is about one thing that looks for a node.
struct Request {
  const ResourceSet& resources;
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  // Up to this utilisation DEFAULT fills a node before it takes the next one.
  double spread_threshold = 0.5;
  NodeSlot near = kNoNode;  // The node of the asker, with which it costs least to talk.
  // Among equals a policy that takes turns takes the next node after this one: the last that it has
  // given the asker.
  NodeSlot last = kNoNode;
};

// A node as a policy's cost sees it.
struct Candidate {
  double utilisation = 0;  // The utilisation with the request granted; see nodes.h.
  int actors = 0;
  bool near = false;
};

struct Policy {
  proto::SchedulingStrategy strategy;
  // The node of least cost is taken.
  double (*cost)(const Candidate& node, const Request& request);
  // Among equals, nodes take turns: the asker remembers Request::last, and an owner returns a lease
  // once it has no task for it, because the next task belongs on another node. Otherwise the near
  // node comes first, then the one that was known first.
  bool takes_turns;
};

// The policy DEFAULT for a strategy of a later release.
const Policy& policy_of(proto::SchedulingStrategy strategy);

// Returns the best node of `fitting`, or kNoNode when that is empty. Those of `preferred` come
// first. Then come nodes without GPUs if nothing is asked of a GPU, because what needs one has
// nowhere else to go. Then the policy decides.
NodeSlot choose(const Nodes& nodes, const Request& request, NodeMask fitting,
                const NodeMask& preferred = {});

}  // namespace rt::scheduling
