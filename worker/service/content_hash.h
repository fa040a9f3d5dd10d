// A 128-bit hash of a value's bytes, to recognise a large argument that was stored before. Not
// secret-keyed: it tells accidents apart, within one process's own objects.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/bytes.h"

namespace rt::worker {

struct ContentHash {
  uint64_t low = 0, high = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};

// XXH3 over pieces, hashed by two threads when there is enough; the same for any number of threads.
ContentHash content_hash(Bytes inband, std::span<const Bytes> buffers);

}  // namespace rt::worker
