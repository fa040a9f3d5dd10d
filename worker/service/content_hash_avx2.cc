#define XXH_INLINE_ALL
#include <xxhash.h>

#include "worker/service/content_hash_pieces.h"

namespace rt::worker {
void hash_piece_avx2(const uint8_t* data, size_t n, uint64_t out[2]) {
  XXH128_hash_t h = XXH3_128bits(data, n);
  out[0] = h.low64;
  out[1] = h.high64;
}
}  // namespace rt::worker
