// These pure functions show training runs as text: the list, one run, and lines of their logs. The
// runs are those of observability/state/train_runs.h.
#pragma once

#include <cstdint>
#include <string>

#include "observability/api_json/node_json.h"

namespace rt::cli {

// One line for each run. A run that has not ended has lasted until `now_ms`.
std::string train_list_text(const api_json::Json& runs, int64_t now_ms);
// A run with its attempts and their ranks. `metrics` is the answer of state::train_metrics(), or
// null if there is none: its last values are shown.
std::string train_run_text(const api_json::Json& run, const api_json::Json& metrics,
                           int64_t now_ms);

// The number of an attempt, from 1; 0 if its id has none.
int64_t attempt_number(const api_json::Json& attempt);
// The attempt of this number, or with 0 the newest one that has ranks; null if there is none.
const api_json::Json* find_attempt(const api_json::Json& run, int64_t number);

// A line of a log of ray.train, which is JSON, as "TIME LEVEL TEXT"; any other line unchanged.
std::string train_log_line(const std::string& line);
// The end of an error message: "there are: mnist, wide and 3 more" or "there are no training runs".
std::string names_text(const api_json::Json& runs);

}  // namespace rt::cli
