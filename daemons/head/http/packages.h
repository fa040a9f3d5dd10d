// Packages of runtime environments in the head's key-value store, in the pieces that workers put
// together again (python/ray/_private/runtime_env/packaging.py writes them, too).
#pragma once

#include <string>

#include "common/state/query.h"

namespace rt::head {

Result<bool> has_package(const state::Cluster& cluster, const std::string& name);
// kInvalid: no name of a package.
Status put_package(const state::Cluster& cluster, const std::string& name, const std::string& data);

}  // namespace rt::head
