// These tests are linked without the cluster: asking for one is an error.
#include "runtime.h"

namespace ray::internal {
std::unique_ptr<Runtime> make_cluster_runtime(const InitOptions&) {
  throw RayException("no cluster in this test");
}
}  // namespace ray::internal
