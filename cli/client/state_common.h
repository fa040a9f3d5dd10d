// Shared by list, get, summary, logs and memory: finding the cluster, asking it over RPC or HTTP,
// and reporting what is missing from an answer.
#pragma once

#include <string>

#include "cli/terminal/command_line.h"
#include "observability/api_json/node_json.h"
#include "observability/state/logs.h"
#include "observability/state/query.h"

namespace rt::cli {

// The cluster's address and the user's token. `option` is the value of --address: HOST:PORT,
// "auto", empty, or http://HOST:PORT of the cluster's HTTP interface.
Result<state::Cluster> state_cluster(const std::string& option);
// The same for --address, with the time that --timeout gives the head.
Result<state::Cluster> state_cluster(const CommandLine& line);

// Ask over HTTP if the cluster's address is a URL, else over RPC.
Result<state::Answer> state_list(const state::Cluster& cluster, const state::Query& query);
Result<state::Answer> state_summary(const state::Cluster& cluster, const state::Query& query);

// Returns the resource that a word names, in Ray's spelling with dashes ("placement-groups") or
// that of the state API ("placement_groups"); null if there is none of that name.
const state::Resource* state_resource(const std::string& word);
// The value of --timeout (whole seconds, default 30), in microseconds.
Result<int64_t> timeout_us(const CommandLine& line);
// Returns how long the head has for the connection and its hello: --timeout if it is given, since a
// user who gives it knows of a head that is slow.
Result<int64_t> connect_us(const CommandLine& line);
// The warning below a truncated list: how many rows are missing and how to see them.
std::string truncation_text(int64_t shown, int64_t all);
// Prints the warnings of an answer to stderr: silent sources, dropped events, a truncated list.
void warn_of_missing(const api_json::Json& answer);
// The current local time as the headers of listings show it, with microseconds.
std::string now_text();
// The exit code for `status`. The error kInvalid is the user's fault and counts as wrong usage.
int state_finish(const std::string& command, const Status& status);

}  // namespace rt::cli
