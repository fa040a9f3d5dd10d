// What list, get, summary, logs and memory share: which cluster is asked, and how.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "common/api_json/node_json.h"
#include "common/state/logs.h"
#include "common/state/query.h"

namespace rt::cli {

// HOST:PORT, "auto", nothing, or http://HOST:PORT of the cluster's HTTP interface.
Result<state::Cluster> state_cluster(const std::string& option);

// By RPC or over HTTP, whichever the address is of.
Result<state::Answer> state_list(const state::Cluster& cluster, const state::Query& query);
Result<state::Answer> state_summary(const state::Cluster& cluster, const state::Query& query);

// "placement-groups" is "placement_groups" to the state API; null: there is no such resource.
const state::Resource* state_resource(const std::string& word);
// --timeout in seconds.
Result<int64_t> timeout_us(const CommandLine& line);
// Says on stderr what an answer lacks.
void warn_of_missing(const api_json::Json& answer);
// When, as headers show it.
std::string now_text();
// kInvalid is the user's fault: exit code 2.
int state_finish(const std::string& command, const Status& status);

}  // namespace rt::cli
