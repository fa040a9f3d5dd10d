// The runtimes and how one becomes the process's.
#pragma once

#include <memory>

#include "ray/api/runtime.h"
#include "settings.h"

namespace ray::internal {

// local_runtime.cc
std::unique_ptr<Runtime> make_local_runtime(const InitOptions& options);
// cluster_runtime.cc: starts or joins a cluster; throws RayException.
std::unique_ptr<Runtime> make_cluster_runtime(const InitOptions& options);

// Makes `runtime` the one of CurrentRuntime(). It stays until Shutdown() or clear_runtime(). False:
// there is one already.
bool set_runtime(std::unique_ptr<Runtime> runtime);
void clear_runtime();

}  // namespace ray::internal
