// Every byte between two processes after the preamble (see preamble.h) is part of a frame: a header
// of 24 bytes and a body. Fields are little-endian.
//
//   offset size  field
//   0      4     body_bytes     all that follows the header
//   4      4     message_bytes  Protobuf part of the body; the rest is the attachment
//   8      4     method         FNV-1a hash of the method's full name, for example
//                               "rt.proto.HeadService.KvPut", or the type of a flat frame
//   12     4     call           chosen by the caller of a request, repeated in its response;
//                               0 in one-way and flat frames
//   16     1     kind           FrameKind
//   17     7     zero
//
// A peer that sends a body over its limit, an unknown kind, message_bytes > body_bytes
// or non-zero padding gets an error frame (kProtocol), and the connection is closed.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/status.h"

namespace rt::rpc {

inline constexpr size_t kHeaderBytes = 24;
inline constexpr uint32_t kProtocolVersion = 1;
// Limit of a body until the hello was accepted.
inline constexpr uint32_t kMaxHelloBytes = 64 * 1024;
// Limit of a body after that. Bulk data travels in much smaller chunks.
inline constexpr uint32_t kMaxFrameBytes = 256u << 20;

enum class FrameKind : uint8_t {
  kRequest = 0,
  kResponse = 1,
  kError = 2,
  kOneWay = 3,
  kFlat = 4,
  kHello = 5,
  kHelloReply = 6
};

struct FrameHeader {
  uint32_t body_bytes = 0;
  uint32_t message_bytes = 0;
  uint32_t method = 0;
  uint32_t call = 0;
  FrameKind kind = FrameKind::kRequest;
};

void encode_header(const FrameHeader& header, uint8_t out[kHeaderBytes]);
// kProtocol when the fields contradict each other or body_bytes > max_body.
Result<FrameHeader> decode_header(const uint8_t in[kHeaderBytes], uint32_t max_body);

uint32_t method_hash(std::string_view full_name);

}  // namespace rt::rpc
