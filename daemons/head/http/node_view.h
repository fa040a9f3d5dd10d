// Nodes, their processes and actors as the cluster views have them, with snake_case keys.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"

namespace rt::head {

using Json = nlohmann::json;

// What one node said of itself; nothing where it did not answer, or is dead.
struct NodeReport {
  proto::Node node;
  proto::HostStats before, now;  // two readings: what is between them makes percentages and speeds
  proto::ProcessesReply processes;
  bool answered = false;
  int64_t store_used = 0, store_capacity = 0;
};

Json node_object(const NodeReport& report);
// The living workers and drivers of the node.
Json worker_objects(const NodeReport& report);
Json actor_object(const proto::ActorInfo& actor);
// "CPU: 1.0/2.0" a line: used and total.
std::string resource_lines(const proto::Node& node);

}  // namespace rt::head
