// Shared by the commands `stack` and `profile`.
#pragma once

#include "cli/terminal/command_line.h"
#include "observability/api_json/node_json.h"
#include "observability/state/profile_query.h"

namespace rt::cli {

// Asks the cluster of --address, and names on stderr the processes that gave no answer.
Result<state::ProfileAnswer> ask_profile(const CommandLine& line, const state::ProfileQuery& query);
// The samples as `stack --format=json` prints them; the frames of a thread begin with the
// innermost.
api_json::Json stacks_json(const profile::AllSamples& all);

}  // namespace rt::cli
