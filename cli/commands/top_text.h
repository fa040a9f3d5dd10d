// The page of `rayctl top`: a pure function of the answers that top.cc has collected.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"

namespace rt::cli {

struct NodeSnapshot {
  proto::Node node;
  bool answered = false;  // Whether its node-manager answered in time.
  // `before` is the answer for the previous page; it is empty (wall_time_us is 0) on the first one.
  proto::HostStats now, before;
  proto::ProcessesReply processes;
};

struct ClusterSnapshot {
  std::string address;
  proto::ClusterStatusReply status;
  std::vector<NodeSnapshot> nodes;         // Only living nodes.
  std::map<std::string, int64_t> tasks;    // The counts by state.
  std::map<WorkerId, std::string> actors;  // The class and name of each.
};

enum class TopOrder { kCpu, kMemory };

// `nodes` and `workers` are the most lines to show of each.
std::string top_text(const ClusterSnapshot& snapshot, TopOrder order, size_t nodes, size_t workers);

}  // namespace rt::cli
