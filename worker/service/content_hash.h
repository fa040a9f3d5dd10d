// A 128-bit hash of a value's bytes, to recognise a large argument that was stored before. It has
// no secret key: it is made for telling one process's own objects apart, not for resisting
// forgery.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/bytes.h"

namespace rt::worker {

struct ContentHash {
  uint64_t low = 0, high = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};

// XXH3 over pieces, hashed by two threads when there are enough bytes. The result does not depend
// on the number of threads.
ContentHash content_hash(Bytes inband, std::span<const Bytes> buffers);

}  // namespace rt::worker
