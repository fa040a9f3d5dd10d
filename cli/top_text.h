// The page of `top`, as a pure function of what was asked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"

namespace rt::cli {

struct NodeLook {
  proto::Node node;
  bool answered = false;  // its node-manager, in time
  proto::HostStats now,
      before;  // before: of the last page; without wall_time_us when there was none
  proto::ProcessesReply processes;
};

struct ClusterLook {
  std::string address;
  proto::ClusterStatusReply status;
  std::vector<NodeLook> nodes;                // living ones
  std::map<std::string, int64_t> tasks;       // by state
  std::map<std::string, std::string> actors;  // by binary worker id: what it is called
};

enum class TopOrder { kCpu, kMemory };

// `workers`, `nodes`: at most so many lines of each.
std::string top_text(const ClusterLook& look, TopOrder order, size_t nodes, size_t workers);

}  // namespace rt::cli
