// Training runs as text: the list, one run, and lines of their logs. Pure functions. The runs are
// those of observability/state/train_runs.h.
#pragma once

#include <cstdint>
#include <string>

#include "observability/api_json/node_json.h"

namespace rt::cli {

// One line for each run. Times of runs that have not ended reach up to `now_ms`.
std::string train_list_text(const api_json::Json& runs, int64_t now_ms);
// A run with its attempts and their ranks. `metrics` is the answer of state::train_metrics(), or
// null if there is none: its last values are shown.
std::string train_run_text(const api_json::Json& run, const api_json::Json& metrics,
                           int64_t now_ms);

// The number of an attempt: the first one of a run has the number 1; 0 if it has none.
int64_t attempt_number(const api_json::Json& attempt);
// The attempt of this number, or with 0 the newest one that has ranks; null if there is none.
const api_json::Json* find_attempt(const api_json::Json& run, int64_t number);

// A line of a log of ray.train, which is JSON, as "TIME LEVEL TEXT"; any other line unchanged.
std::string train_log_line(const std::string& line);
// The names of runs for an error message: "digits, words", or how to make one if there is none.
std::string names_text(const api_json::Json& runs);

}  // namespace rt::cli
