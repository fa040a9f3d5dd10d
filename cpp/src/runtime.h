// Makes the two kinds of runtime, and sets the one of the process.
#pragma once

#include <memory>

#include "ray/api/runtime.h"
#include "settings.h"

namespace ray::internal {

// Defined in local_runtime.cc; never fails.
std::unique_ptr<Runtime> make_local_runtime(const InitOptions& options);
// Defined in connect.cc. Starts or joins a cluster; throws RayException when that fails.
std::unique_ptr<Runtime> make_cluster_runtime(const InitOptions& options);

// Makes `runtime` the one that CurrentRuntime() returns, until Shutdown() or clear_runtime().
// Returns false, and destroys it, when there already is one.
bool set_runtime(std::unique_ptr<Runtime> runtime);
void clear_runtime();

}  // namespace ray::internal
