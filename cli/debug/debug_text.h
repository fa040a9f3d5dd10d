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
  std::string head_address;  // HOST:PORT.
  proto::ClusterStatusReply status;
  std::vector<proto::ActorInfo> actors;            // Without dead ones.
  api_json::Json tasks = api_json::Json::array();  // Detailed rows of tasks that have not ended.
  std::vector<proto::SubmittedJob> jobs;
  std::vector<proto::GroupInfo> groups;  // With those removed groups that are remembered.
  api_json::Json stores = api_json::Json::array();  // See state::store_stats().
  // They have the form in which ray/_private/breakpoints.py stores them.
  std::vector<api_json::Json> breakpoints;
};

// `count` equal tasks or actors that wait, and the reason.
//
// Owners tell of the growth of their queues only in steps, so that a count of demands from 2 on may
// be too small: `is_least` says so.
struct Explanation {
  int64_t count = 0;
  std::string what;  // For example "train {'CPU': 8.0}".
  std::string why;
  std::vector<std::string> holders;  // Holders of the scarce resources, the largest one first.
  bool is_least = false;
};

std::vector<Explanation> explain(const WaitingSnapshot& snapshot);
std::string debug_text(const WaitingSnapshot& snapshot);
api_json::Json debug_json(const WaitingSnapshot& snapshot);

}  // namespace rt::cli
