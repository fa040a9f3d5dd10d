// Runtime environments as data: JSON objects with sorted keys; "" is none. Every task and actor
// carries its own, merged with that of its submitter.
#pragma once

#include <string>

namespace rt::worker {

// Fields of `child` replace those of `parent`; env_vars are merged, the child's win. What is no
// JSON object stays as it is given, for the worker that is started for it to refuse.
std::string merge_runtime_env(const std::string& parent, const std::string& child);

}  // namespace rt::worker
