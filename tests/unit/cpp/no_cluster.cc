// The tests of local mode are linked without the worker library; connecting to a cluster throws.
#include "runtime.h"

namespace ray::internal {
std::unique_ptr<Runtime> make_cluster_runtime(const InitOptions&) {
  throw RayException("no cluster in this test");
}
}  // namespace ray::internal
