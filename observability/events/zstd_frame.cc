#include "observability/events/zstd_frame.h"

#include <fmt/format.h>
#include <zstd.h>

namespace rt::events {
namespace {

constexpr size_t kMaxUnpackedBytes = 128u << 20;
constexpr int kLevel = 1;

Error not_a_frame(std::string_view why) {
  return make_error(Code::kInvalid, fmt::format("not a batch of task events: {}", why));
}

}  // namespace

std::string compress(std::string_view raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  size_t n = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kLevel);
  RT_CHECK(!ZSTD_isError(n));
  packed.resize(n);
  return packed;
}

Result<std::string> decompress(std::string_view packed) {
  unsigned long long size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return not_a_frame("no compressed frame of known size");
  if (size > kMaxUnpackedBytes)
    return not_a_frame(fmt::format("it would unpack to {} bytes", size));
  std::string raw(static_cast<size_t>(size), '\0');
  size_t n = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(n) || n != raw.size()) return not_a_frame("the compressed frame is damaged");
  return raw;
}

}  // namespace rt::events
