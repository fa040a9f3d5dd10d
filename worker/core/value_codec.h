// Encoding and decoding of values. The layout is described in worker/value.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "common/proto/common.pb.h"
#include "worker/value.h"

namespace rt::worker {

inline constexpr size_t kValueHeader = 24;

// Packed references: u16 address count, per address (u32 length, serialised WorkerAddress), u32
// reference count, per reference (28 bytes id, u16 address index).
using OwnerOf = std::function<const proto::WorkerAddress&(const Ref&)>;
std::string pack_refs(std::span<const Ref> refs, const OwnerOf& owner_of);

struct PackedRef {
  ObjectId id;
  std::shared_ptr<const proto::WorkerAddress> owner;
};
// Fails with kInvalid for anything malformed.
Result<std::vector<PackedRef>> unpack_refs(Bytes packed);

size_t encoded_size(const ValueParts& parts, size_t packed_refs);
// Writes the header, the references and the in-band bytes, and calls `copy` for each buffer.
// `parallel_from` is handed to `copy`: from this size on a copy may use a second thread.
using CopyFn = void (*)(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);
void encode_value(const ValueParts& parts, std::string_view packed_refs, uint8_t* out, CopyFn copy,
                  size_t parallel_from = 0);
void plain_copy(uint8_t* to, const uint8_t* from, size_t n, size_t parallel_from);
// Appends a value to a string; `size` is its encoded_size().
inline void append_value(std::string& out, const ValueParts& parts, std::string_view packed_refs,
                         size_t size) {
  const size_t at = out.size();
  out.resize(at + size);
  encode_value(parts, packed_refs, reinterpret_cast<uint8_t*>(out.data()) + at, plain_copy);
}
// A value without references inside.
std::string encode_plain(const ValueParts& parts);

// Views into `encoded`, which may come from a peer, so every offset is checked. The references
// inside are left packed.
struct DecodedValue {
  ValueKind kind;
  Bytes inband;
  std::vector<Bytes> buffers;
  Bytes packed_refs;
};
Result<DecodedValue> decode_value(Bytes encoded);
// The decoded value as languages get it, without the references inside. `keepalive` pins the memory
// of its bytes.
inline Value to_value(DecodedValue&& decoded, Keepalive keepalive) {
  Value value;
  value.kind = decoded.kind;
  value.inband = decoded.inband;
  value.buffers = std::move(decoded.buffers);
  value.keepalive = std::move(keepalive);
  return value;
}

// Encodes a value of kind kError.
std::string encode_error(const proto::ErrorValue& error);
Result<proto::ErrorValue> decode_error(Bytes inband);
bool is_error(Bytes encoded);
// Decodes an encoded value of kind kError; kInvalid for malformed bytes.
Result<proto::ErrorValue> error_of(Bytes encoded);

}  // namespace rt::worker
