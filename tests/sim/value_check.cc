#include "tests/sim/value_check.h"

#include <algorithm>
#include <vector>

#include "tests/sim/ledger.h"

namespace rt::sim {
namespace {

struct Parts {
  explicit Parts(uint64_t seed) {
    Rng rng(seed);
    kind = static_cast<worker::ValueKind>(rng.below(3));
    inband = bytes(rng, 40);
    for (uint64_t i = rng.below(4); i > 0; --i) buffers.push_back(bytes(rng, 200));
  }
  static std::string bytes(Rng& rng, uint64_t most) {
    std::string out(rng.below(most), '\0');
    for (char& c : out) c = static_cast<char>(rng.below(256));
    return out;
  }

  worker::ValueKind kind;
  std::string inband;
  std::vector<std::string> buffers;
};

bool lies_within(Bytes part, std::string_view whole) {
  const Bytes all = as_bytes(whole);
  return part.empty() ||
         (part.data() >= all.data() && part.size() <= all.size() &&
          part.data() - all.data() <= static_cast<std::ptrdiff_t>(all.size() - part.size()));
}

}  // namespace

std::string encoded_value(uint64_t seed, std::string_view packed_refs) {
  const Parts random(seed);
  worker::ValueParts parts;
  parts.kind = random.kind;
  parts.inband = as_bytes(random.inband);
  std::vector<Bytes> buffers;
  for (const std::string& buffer : random.buffers) buffers.push_back(as_bytes(buffer));
  parts.buffers = buffers;
  std::string out;
  worker::append_value(out, parts, packed_refs, worker::encoded_size(parts, packed_refs.size()));
  return out;
}

std::vector<worker::PackedRef> decoded_refs(uint64_t seed, std::string_view encoded) {
  const Parts expected(seed);
  const auto value = worker::decode_value(as_bytes(encoded));
  if (!value) violation("a value cannot be decoded: " + value.error().message);
  const bool same_buffers =
      std::ranges::equal(value->buffers, expected.buffers,
                         [](Bytes got, const std::string& put) { return as_view(got) == put; });
  if (value->kind != expected.kind || as_view(value->inband) != expected.inband || !same_buffers)
    violation("a value is decoded as another one");
  auto refs = worker::unpack_refs(value->packed_refs);
  if (!refs) violation("the references in a value cannot be read: " + refs.error().message);
  return std::move(*refs);
}

void decode_damaged(Rng& rng, std::string encoded) {
  if (rng.chance(0.3)) encoded.resize(rng.below(encoded.size() + 1));
  for (uint64_t i = rng.below(4); i > 0 && !encoded.empty(); --i) {
    // The numbers of a value are in its first bytes.
    const uint64_t range =
        rng.chance(0.8) ? std::min<uint64_t>(96, encoded.size()) : encoded.size();
    encoded[rng.below(range)] = static_cast<char>(rng.chance(0.3) ? 255 : rng.below(256));
  }
  const auto value = worker::decode_value(as_bytes(encoded));
  if (!value) return;
  bool within = lies_within(value->inband, encoded) && lies_within(value->packed_refs, encoded);
  for (Bytes buffer : value->buffers) within = within && lies_within(buffer, encoded);
  if (!within) violation("a part of a damaged value lies beyond its end");
  (void)worker::unpack_refs(value->packed_refs);
}

}  // namespace rt::sim
