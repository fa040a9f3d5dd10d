// The encoding of values and of packed references.
#include "worker/core/value_codec.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace rt::worker {
namespace {

std::vector<uint8_t> encode(const ValueParts& parts, std::string_view packed = {}) {
  std::vector<uint8_t> out(encoded_size(parts, packed.size()));
  encode_value(parts, packed, out.data(), plain_copy);
  return out;
}

TEST(ValueCodec, RoundTripWithBuffers) {
  std::string inband = "pickle", big(1000, 'x'), small = "y";
  std::vector<Bytes> buffers{as_bytes(big), as_bytes(small), {}};
  ValueParts parts;
  parts.inband = as_bytes(inband);
  parts.buffers = buffers;
  auto bytes = encode(parts);
  auto value = decode_value(bytes);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->kind, ValueKind::kPickle);
  EXPECT_EQ(as_view(value->inband), inband);
  ASSERT_EQ(value->buffers.size(), 3u);
  EXPECT_EQ(as_view(value->buffers[0]), big);
  EXPECT_EQ((value->buffers[0].data() - bytes.data()) % 64, 0);
  EXPECT_EQ(as_view(value->buffers[1]), small);
  EXPECT_TRUE(value->buffers[2].empty());
}

// A value whose header was damaged either still decodes to views inside its bytes or is refused.
TEST(ValueCodec, DamagedHeadersStayInBounds) {
  std::string inband(300, 'p'), buffer(500, 'b');
  std::vector<Bytes> buffers{as_bytes(buffer)};
  ValueParts parts;
  parts.inband = as_bytes(inband);
  parts.buffers = buffers;
  auto good = encode(parts);
  Rng rng(7);
  for (int round = 0; round < 20000; ++round) {
    auto bad = good;
    for (int i = 0; i < 3; ++i)
      bad[rng.below(kValueHeader + 16)] = static_cast<uint8_t>(rng.next());
    if (rng.chance(0.3)) bad.resize(rng.below(bad.size()));
    auto value = decode_value(bad);
    if (!value) continue;
    auto inside = [&](Bytes b) {
      return b.empty() ||
             (b.data() >= bad.data() && b.data() + b.size() <= bad.data() + bad.size());
    };
    ASSERT_TRUE(inside(value->inband) && inside(value->packed_refs));
    for (Bytes b : value->buffers) ASSERT_TRUE(inside(b));
    (void)unpack_refs(value->packed_refs);
  }
}

TEST(ValueCodec, PackedReferencesKeepIdsAndOwners) {
  Rng rng(3);
  std::vector<RefEntry> entries(1000);
  proto::WorkerAddress owners[2];
  owners[0].set_worker_id(WorkerId::random(rng).binary());
  owners[1].set_worker_id(WorkerId::random(rng).binary());
  std::vector<Ref> refs;
  for (auto& entry : entries) {
    entry.id = ObjectId::random(rng);
    entry.local_refs = 1;  // Keeps the drop of a Ref from being the last one.
    refs.emplace_back(&entry);
  }
  size_t i = 0;
  std::string packed = pack_refs(refs, [&](const Ref& ref) -> const proto::WorkerAddress& {
    (void)ref;
    return owners[(i++ / 10) % 2];
  });
  auto unpacked = unpack_refs(as_bytes(packed));
  ASSERT_TRUE(unpacked);
  ASSERT_EQ(unpacked->size(), refs.size());
  for (size_t k = 0; k < refs.size(); ++k) EXPECT_EQ((*unpacked)[k].id, refs[k].id());
  for (size_t cut = 0; cut < packed.size(); cut += 97)
    EXPECT_TRUE(cut == 0 || !unpack_refs(as_bytes(packed).first(cut)));
}

TEST(ValueCodec, ErrorsAreRecognisable) {
  proto::ErrorValue error;
  error.set_message("boom");
  std::string encoded = encode_error(error);
  EXPECT_TRUE(is_error(as_bytes(encoded)));
  auto value = decode_value(as_bytes(encoded));
  ASSERT_TRUE(value);
  auto back = decode_error(value->inband);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message(), "boom");
}

}  // namespace
}  // namespace rt::worker
