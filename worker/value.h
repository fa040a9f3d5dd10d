// Values: the bytes of an object, the same on the wire, in the owner's memory and in shared memory.
//
//   offset size  field (little-endian)
//   0      1     kind             ValueKind
//   1      3     zero
//   4      4     contained_bytes  packed references inside the value (worker/core/value_codec.cc)
//   8      8     inband_bytes
//   16     4     buffer_count
//   20     4     zero
//   24     16*n  (offset from the value's start, size) for each of n out-of-band buffers
//   ...          packed references, in-band bytes, then the buffers, each at a multiple of 64
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "worker/ref.h"

namespace rt::worker {

enum class ValueKind : uint8_t {
  kPickle = 0,   // Python: an in-band pickle with protocol 5 buffers.
  kRaw = 1,      // The bytes as they are (Python `bytes`), in-band.
  kMsgpack = 2,  // C++ and calls between languages.
  kError = 3,    // In-band: proto::ErrorValue.
  kNone = 4,     // Python None or C++ void; nothing in-band.
};

// A value as a language hands it in: views that must stay valid during the call.
struct ValueParts {
  ValueKind kind = ValueKind::kPickle;
  Bytes inband;
  std::span<const Bytes> buffers;
  // The references pickled inside, in the order in which the pickle numbers them.
  std::span<const Ref> contained;
};

// A value as a language gets it: views into memory that `keepalive` pins as long as anything
// refers to it.
struct Value {
  ValueKind kind = ValueKind::kNone;
  Bytes inband;
  std::vector<Bytes> buffers;
  std::vector<Ref> contained;
  Keepalive keepalive;
  bool in_shared_memory = false;
};

}  // namespace rt::worker
