// What stack and profile share.
#pragma once

#include "cli/command_line.h"
#include "common/api_json/node_json.h"
#include "common/state/profile_query.h"

namespace rt::cli {

// Asks the cluster of --address; says on stderr which processes gave no answer.
Result<state::ProfileAnswer> ask_profile(const CommandLine& line, const state::ProfileQuery& query);
api_json::Json stacks_json(const profile::AllSamples& all);

}  // namespace rt::cli
