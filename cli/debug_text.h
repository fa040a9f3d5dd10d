// The page of `debug`: what waits, and why. A pure function of what the cluster answered.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/api_json/node_json.h"
#include "common/proto/head.pb.h"

namespace rt::cli {

struct WaitingLook {
  proto::ClusterStatusReply status;
  std::vector<proto::ActorInfo> actors;            // but for dead ones
  api_json::Json tasks = api_json::Json::array();  // rows with details of those that have not ended
  std::vector<proto::SubmittedJob> jobs;
  std::vector<api_json::Json> breakpoints;  // as ray.util.pdb lists them
};

// One thing that waits.
struct Explanation {
  int64_t count = 0;
  std::string what;  // "train {'CPU': 8.0}"
  std::string why;
  std::vector<std::string> holders;  // who has what it waits for, most first
};

std::vector<Explanation> explain(const WaitingLook& look);
std::string debug_text(const WaitingLook& look);
api_json::Json debug_json(const WaitingLook& look);

}  // namespace rt::cli
