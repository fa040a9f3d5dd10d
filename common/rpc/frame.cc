#include "common/rpc/frame.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace rt::rpc {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

void put(uint8_t* to, uint32_t value) { std::memcpy(to, &value, sizeof(value)); }
uint32_t get(const uint8_t* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace

void encode_header(const FrameHeader& header, uint8_t out[kHeaderBytes]) {
  put(out, header.body_bytes);
  put(out + 4, header.message_bytes);
  put(out + 8, header.method);
  put(out + 12, header.call);
  put(out + 16, static_cast<uint32_t>(header.kind));
  put(out + 20, 0);
}

Result<FrameHeader> decode_header(const uint8_t in[kHeaderBytes], uint32_t max_body) {
  FrameHeader header{get(in), get(in + 4), get(in + 8), get(in + 12),
                     static_cast<FrameKind>(in[16])};
  // The padding is checked first: foreign protocols fail here, and a message about what seems to be
  // their lengths would mislead.
  if ((get(in + 16) >> 8) != 0 || get(in + 20) != 0)
    return make_error(Code::kProtocol, "malformed frame: its padding is not zero");
  if (in[16] > static_cast<uint8_t>(FrameKind::kHelloReply))
    return make_error(Code::kProtocol, fmt::format("malformed frame: unknown kind {}", in[16]));
  if (header.body_bytes > max_body) {
    return make_error(Code::kProtocol, fmt::format("oversized frame: {} bytes, the limit is {}",
                                                   header.body_bytes, max_body));
  }
  if (header.message_bytes > header.body_bytes) {
    return make_error(Code::kProtocol,
                      fmt::format("malformed frame: a message of {} bytes in a body of {}",
                                  header.message_bytes, header.body_bytes));
  }
  return header;
}

uint32_t method_hash(std::string_view full_name) {
  uint32_t hash = 2166136261u;
  for (char c : full_name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

}  // namespace rt::rpc
