// XXH3-128 of one piece, compiled for plain x86-64 and for AVX2 (Debian's libxxhash is built for
// the former).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rt::worker {

void hash_piece_base(const uint8_t* data, size_t n, uint64_t out[2]);
void hash_piece_avx2(const uint8_t* data, size_t n, uint64_t out[2]);

}  // namespace rt::worker
