#include "common/base/rng.h"

#include <sys/random.h>

#include "common/base/status.h"

namespace rt {

Rng Rng::from_system() {
  uint64_t seed = 0;
  RT_CHECK(getrandom(&seed, sizeof seed, 0) == sizeof seed);
  return Rng(seed);
}

}  // namespace rt
