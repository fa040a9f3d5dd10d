// Runtime environments as data: JSON objects with sorted keys, "" for none. Every task and actor
// carries its own, merged with that of its submitter.
#pragma once

#include <string>

namespace rt::worker {

// Fields of `child` replace those of `parent`, except env_vars, which are merged and where those
// of the child win. A `child` that is no JSON object is returned unchanged; the worker started for
// it will refuse it.
std::string merge_runtime_env(const std::string& parent, const std::string& child);

}  // namespace rt::worker
