#include "worker/service/content_hash.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "daemons/object_store/client/store_client.h"
#include "worker/service/content_hash_pieces.h"

namespace rt::worker {
namespace {

constexpr size_t kPiece = 4 << 20;
constexpr size_t kParallelFrom = 32 << 20;

using HashPiece = void (*)(const uint8_t*, size_t, uint64_t*);

HashPiece choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return hash_piece_avx2;
#endif
  return hash_piece_base;
}

}  // namespace

ContentHash content_hash(Bytes inband, std::span<const Bytes> buffers) {
  static const HashPiece hash_piece = choose();
  struct Piece {
    const uint8_t* data;
    size_t size;
  };
  std::vector<Piece> pieces;
  // Two per piece, then the sizes; the final hash is computed over these.
  std::vector<uint64_t> digests;
  size_t total = 0;
  auto add = [&](Bytes bytes) {
    for (size_t at = 0; at < bytes.size(); at += kPiece)
      pieces.push_back({bytes.data() + at, std::min(kPiece, bytes.size() - at)});
    total += bytes.size();
  };
  add(inband);
  for (Bytes buffer : buffers) {
    store::prefer_huge_pages(buffer.data(), buffer.size());
    add(buffer);
  }
  digests.resize(pieces.size() * 2);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < pieces.size();)
      hash_piece(pieces[i].data, pieces[i].size, &digests[i * 2]);
  };
  if (total >= kParallelFrom) {
    std::thread second(work);
    work();
    second.join();
  } else {
    work();
  }
  digests.push_back(inband.size());
  for (Bytes buffer : buffers) digests.push_back(buffer.size());
  uint64_t out[2];
  hash_piece(reinterpret_cast<const uint8_t*>(digests.data()), digests.size() * sizeof(uint64_t),
             out);
  return {out[0], out[1]};
}

}  // namespace rt::worker
