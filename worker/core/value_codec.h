// Encoding and decoding of values; the layout is in worker/value.h.
#pragma once

#include <functional>
#include <memory>

#include "common/proto/common.pb.h"
#include "worker/value.h"

namespace rt::worker {

inline constexpr size_t kValueHeader = 24;

// Packed references: u16 address count, each u32 length + serialised WorkerAddress; u32 reference
// count, each 28 bytes id + u16 address index.
using OwnerOf = std::function<const proto::WorkerAddress&(const Ref&)>;
std::string pack_refs(std::span<const Ref> refs, const OwnerOf& owner_of);

struct PackedRef {
  ObjectId id;
  std::shared_ptr<const proto::WorkerAddress> owner;
};
// kInvalid for anything malformed.
Result<std::vector<PackedRef>> unpack_refs(Bytes packed);

size_t encoded_size(const ValueParts& parts, size_t packed_refs);
// Header, references and in-band bytes go out at once; `copy` writes each buffer (a hook for
// parallel copies). `parallel_from`: passed on; from this size on a copy may use a second thread.
using CopyFn = void (*)(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);
void encode_value(const ValueParts& parts, std::string_view packed_refs, uint8_t* out, CopyFn copy,
                  size_t parallel_from = 0);
void plain_copy(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);

// Views into `encoded`. Peers' bytes: every offset is checked. `contained` is left to the caller
// (packed_refs).
struct DecodedValue {
  ValueKind kind;
  Bytes inband;
  std::vector<Bytes> buffers;
  Bytes packed_refs;
};
Result<DecodedValue> decode_value(Bytes encoded);

// A kError value.
std::string encode_error(const proto::ErrorValue& error);
Result<proto::ErrorValue> decode_error(Bytes inband);
bool is_error(Bytes encoded);
// Of an encoded value of the kind; kInvalid for anything else.
Result<proto::ErrorValue> error_of(Bytes encoded);

}  // namespace rt::worker
