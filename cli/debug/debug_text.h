// The page of `rayctl debug`, which says what waits and why. All functions are pure: they work on
// the answers that debug.cc has collected from the cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "observability/api_json/node_json.h"

namespace rt::cli {

struct WaitingSnapshot {
  proto::ClusterStatusReply status;
  std::vector<proto::ActorInfo> actors;            // without dead ones
  api_json::Json tasks = api_json::Json::array();  // detailed rows of tasks that have not ended
  std::vector<proto::SubmittedJob> jobs;
  std::vector<proto::GroupInfo> groups;  // the removed ones that are remembered among them
  api_json::Json stores = api_json::Json::array();  // see state::store_stats()
  std::vector<api_json::Json> breakpoints;          // as ray/_private/breakpoints.py stores them
};

// `count` equal tasks or actors that wait, and the reason.
struct Explanation {
  int64_t count = 0;
  std::string what;  // for example "train {'CPU': 8.0}"
  std::string why;
  std::vector<std::string> holders;  // who holds the scarce resources, the largest holder first
};

std::vector<Explanation> explain(const WaitingSnapshot& snapshot);
std::string debug_text(const WaitingSnapshot& snapshot);
api_json::Json debug_json(const WaitingSnapshot& snapshot);

}  // namespace rt::cli
