// Stores packages of runtime environments in the head's key-value store, in pieces that workers
// put together again. python/ray/_private/runtime_env/packaging.py writes the same format.
#pragma once

#include <string>

#include "observability/state/query.h"

namespace rt::head {

Result<bool> has_package(const state::Cluster& cluster, const std::string& name);
// Fails with kInvalid for a name that is not a package's, or with the head's error.
Status put_package(const state::Cluster& cluster, const std::string& name, const std::string& data);

}  // namespace rt::head
