// Nodes, their processes and actors in the form of the cluster views, with snake_case keys.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"

namespace rt::head {

using Json = nlohmann::json;

// The answer of one node. The fields after `node` are empty for a node that is dead or did not
// answer.
struct NodeReport {
  proto::Node node;
  // Two readings; percentages and speeds cover the time between them.
  proto::HostStats before, now;
  proto::ProcessesReply processes;
  bool answered = false;
  std::optional<int64_t> store_used, store_capacity;  // empty if the store did not answer
};

Json node_object(const NodeReport& report);
// Returns the living workers and drivers of the node.
Json worker_objects(const NodeReport& report);
// Returns the use of one process of the node, or null if the node does not report it.
Json process_stats(const NodeReport& report, int pid);
Json actor_object(const proto::ActorInfo& actor);
// Returns used and total amounts, one resource a line: "1/2 CPU".
std::string resource_lines(const proto::Node& node);

}  // namespace rt::head
