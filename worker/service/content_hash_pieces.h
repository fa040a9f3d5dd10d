// XXH3-128 of one piece, compiled once for plain x86-64 and once for AVX2, because Debian's
// libxxhash is built for plain x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rt::worker {

void hash_piece_base(const uint8_t* data, size_t n, uint64_t out[2]);
void hash_piece_avx2(const uint8_t* data, size_t n, uint64_t out[2]);

}  // namespace rt::worker
