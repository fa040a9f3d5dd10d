// Prints a log of any node, over RPC or HTTP, and follows it if the query says so.
#pragma once

#include "observability/state/logs.h"

namespace rt::cli {

// Passes the log to `take` in pieces, until its end or until `take` returns false. A followed log
// goes on over HTTP with another process of the head.
Status pass_log(const state::Cluster& cluster, const state::LogQuery& query,
                const state::TakeLog& take);
// Writes the log to standard output.
Status print_log(const state::Cluster& cluster, const state::LogQuery& query);

}  // namespace rt::cli
