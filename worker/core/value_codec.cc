#include "worker/core/value_codec.h"

#include <cstring>

#include "common/base/byte_reader.h"

namespace rt::worker {
namespace {

template <class T>
void put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

size_t align64(size_t n) { return (n + 63) & ~size_t{63}; }

size_t buffers_start(const ValueParts& parts, size_t packed_refs) {
  return kValueHeader + 16 * parts.buffers.size() + packed_refs + parts.inband.size();
}

}  // namespace

std::string pack_refs(std::span<const Ref> refs, const OwnerOf& owner_of) {
  std::string out;
  if (refs.empty()) return out;
  // There are few owners and many references, and the next reference nearly always has the same
  // owner as the last, so the last index is tried first.
  std::vector<const proto::WorkerAddress*> owners;
  std::string ids;
  ids.reserve(refs.size() * 30);
  uint16_t index = 0;
  for (const Ref& ref : refs) {
    const proto::WorkerAddress& owner = owner_of(ref);
    if (owners.empty() || owners[index]->worker_id() != owner.worker_id()) {
      for (index = 0; index < owners.size() && owners[index]->worker_id() != owner.worker_id();)
        ++index;
      if (index == owners.size()) owners.push_back(&owner);
    }
    ids.append(ref.id().view());
    put(&ids, index);
  }
  put(&out, static_cast<uint16_t>(owners.size()));
  for (const auto* owner : owners) {
    std::string bytes = owner->SerializeAsString();
    put(&out, static_cast<uint32_t>(bytes.size()));
    out += bytes;
  }
  put(&out, static_cast<uint32_t>(refs.size()));
  return out + ids;
}

Result<std::vector<PackedRef>> unpack_refs(Bytes packed) {
  std::vector<PackedRef> refs;
  if (packed.empty()) return refs;
  Error bad = make_error(Code::kInvalid, "malformed references inside a value");
  ByteReader reader(packed);
  const auto owner_count = reader.number<uint16_t>();
  std::vector<std::shared_ptr<const proto::WorkerAddress>> owners;
  for (int i = 0; i < owner_count; ++i) {
    const Bytes bytes = reader.take(reader.number<uint32_t>());
    auto address = std::make_shared<proto::WorkerAddress>();
    if (!reader.ok() || !address->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return bad;
    owners.push_back(std::move(address));
  }
  const uint32_t count = reader.count(ObjectId::kSize + sizeof(uint16_t));
  refs.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view id = reader.text(ObjectId::kSize);
    const auto index = reader.number<uint16_t>();
    if (index >= owners.size()) return bad;
    refs.push_back({ObjectId::from_binary(id), owners[index]});
  }
  if (!reader.ok()) return bad;
  return refs;
}

size_t encoded_size(const ValueParts& parts, size_t packed_refs) {
  size_t end = buffers_start(parts, packed_refs);
  for (Bytes buffer : parts.buffers) end = align64(end) + buffer.size();
  return end;
}

void plain_copy(uint8_t* to, const uint8_t* from, size_t n, size_t) { std::memcpy(to, from, n); }

void encode_value(const ValueParts& parts, std::string_view packed_refs, uint8_t* out, CopyFn copy,
                  size_t parallel_from) {
  std::memset(out, 0, kValueHeader);
  out[0] = static_cast<uint8_t>(parts.kind);
  uint32_t contained = packed_refs.size(), count = parts.buffers.size();
  uint64_t inband = parts.inband.size();
  std::memcpy(out + 4, &contained, 4);
  std::memcpy(out + 8, &inband, 8);
  std::memcpy(out + 16, &count, 4);
  size_t end = buffers_start(parts, packed_refs.size());
  uint8_t* table = out + kValueHeader;
  uint8_t* body = table + 16 * count;
  if (contained) std::memcpy(body, packed_refs.data(), contained);
  if (inband) std::memcpy(body + contained, parts.inband.data(), inband);
  for (Bytes buffer : parts.buffers) {
    uint64_t entry[2] = {align64(end), buffer.size()};
    std::memcpy(table, entry, 16);
    table += 16;
    if (!buffer.empty()) copy(out + entry[0], buffer.data(), buffer.size(), parallel_from);
    end = entry[0] + entry[1];
  }
}

Result<DecodedValue> decode_value(Bytes encoded) {
  // Every ray.get() decodes, so the error's text is made only where it is needed.
  const auto bad = [] { return make_error(Code::kInvalid, "malformed value"); };
  if (encoded.size() < kValueHeader || encoded[0] > static_cast<uint8_t>(ValueKind::kNone))
    return bad();
  uint32_t contained, count;
  uint64_t inband;
  std::memcpy(&contained, encoded.data() + 4, 4);
  std::memcpy(&inband, encoded.data() + 8, 8);
  std::memcpy(&count, encoded.data() + 16, 4);
  size_t rest = encoded.size() - kValueHeader;
  if (count > rest / 16) return bad();
  rest -= 16 * size_t{count};
  if (contained > rest || inband > rest - contained) return bad();
  DecodedValue value;
  value.kind = static_cast<ValueKind>(encoded[0]);
  const uint8_t* table = encoded.data() + kValueHeader;
  size_t body = kValueHeader + 16 * size_t{count};
  value.packed_refs = encoded.subspan(body, contained);
  value.inband = encoded.subspan(body + contained, inband);
  value.buffers.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t entry[2];
    std::memcpy(entry, table + 16 * i, 16);
    if (entry[0] > encoded.size() || entry[1] > encoded.size() - entry[0]) return bad();
    value.buffers.push_back(encoded.subspan(entry[0], entry[1]));
  }
  return value;
}

std::string encode_plain(const ValueParts& parts) {
  std::string out;
  append_value(out, parts, {}, encoded_size(parts, 0));
  return out;
}

std::string encode_error(const proto::ErrorValue& error) {
  std::string inband = error.SerializeAsString();
  ValueParts parts;
  parts.kind = ValueKind::kError;
  parts.inband = as_bytes(inband);
  return encode_plain(parts);
}

Result<proto::ErrorValue> decode_error(Bytes inband) {
  proto::ErrorValue error;
  if (!error.ParseFromArray(inband.data(), inband.size()))
    return make_error(Code::kInvalid, "malformed error value");
  return error;
}

Result<proto::ErrorValue> error_of(Bytes encoded) {
  RT_ASSIGN(DecodedValue value, decode_value(encoded));
  return decode_error(value.inband);
}

bool is_error(Bytes encoded) {
  return !encoded.empty() && encoded[0] == static_cast<uint8_t>(ValueKind::kError);
}

}  // namespace rt::worker
