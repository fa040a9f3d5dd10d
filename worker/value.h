// Values: the bytes of an object, the same on the wire, in the owner's memory and in shared memory.
//
//   offset size  field (little-endian)
//   0      1     kind             ValueKind
//   1      3     zero
//   4      4     contained_bytes  packed references inside the value (worker/core/value_codec.cc)
//   8      8     inband_bytes
//   16     4     buffer_count
//   20     4     zero
//   24     16*n  (offset from the value's start, size) per out-of-band buffer; buffers start at
//   multiples of 64
//   ...          packed references, in-band bytes, buffers
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "worker/ref.h"

namespace rt::worker {

enum class ValueKind : uint8_t {
  kPickle = 0,   // Python: in-band pickle, protocol 5 buffers
  kRaw = 1,      // bytes as they are (Python `bytes`): in-band
  kMsgpack = 2,  // C++ and cross-language
  kError = 3,    // in-band: proto::ErrorValue
  kNone = 4,     // Python None / C++ void: nothing in-band
};

// What a language hands in: views that stay valid during the call.
struct ValueParts {
  ValueKind kind = ValueKind::kPickle;
  Bytes inband;
  std::span<const Bytes> buffers;
  std::span<const Ref>
      contained;  // references pickled inside, in the order the pickle numbers them
};

// What comes out: views into memory that `keepalive` pins, for as long as anything refers to it.
struct Value {
  ValueKind kind = ValueKind::kNone;
  Bytes inband;
  std::vector<Bytes> buffers;
  std::vector<Ref> contained;
  Keepalive keepalive;
  bool in_shared_memory = false;
};

}  // namespace rt::worker
