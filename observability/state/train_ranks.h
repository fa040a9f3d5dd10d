// Looks at the ranks of a training run that is under way: where each of them is, and with some
// seconds of samples which one the others wait for. The processes take the samples of themselves
// (observability/profile), so a rank that reports nothing is seen, too.
#pragma once

#include "observability/state/query.h"

namespace rt::state {

// The longest look, in seconds.
inline constexpr double kMostLookSeconds = 600;

// Returns {"run_id", "attempt_id", "seconds", "ranks": [rank_json()], "verdict", "stragglers":
// [rank], "sentence", "missing": [text], "notes": [text]}; see train_waits.h. A rank that has
// reported the length of its steps has it as "step_s".
//
// `run` is a run of train_runs.h. Looks once at Python frames with `seconds` 0: then there is no
// verdict, and a run without living ranks is no error. Otherwise samples for that long, with native
// frames, which show collectives. Blocks for `seconds` and at most `timeout_us`. Ranks without an
// answer are absent from "ranks", and "missing" says why. Returns kNotFound if no rank of the run
// is alive, kInvalid for seconds out of bounds, and kUnavailable if no rank answered.
Result<Answer> look_at_ranks(const Cluster& cluster, const Json& run, double seconds,
                             int64_t timeout_us);
// Returns the answer to a look with `seconds` 0 at which no rank was seen; `missing` says why.
Answer answer_without_ranks(const Json& run, const std::vector<std::string>& missing);

}  // namespace rt::state
