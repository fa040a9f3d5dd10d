// Values that one process encodes and another decodes, whole or damaged.
#pragma once

#include <string>
#include <string_view>

#include "common/base/rng.h"
#include "worker/core/value_codec.h"

namespace rt::sim {

// A random value around these references, in the form in which it is kept and sent. Its parts
// follow from `seed`.
std::string encoded_value(uint64_t seed, std::string_view packed_refs);
// Checks that the parts are those of encoded_value(), and returns the references inside.
std::vector<worker::PackedRef> decoded_refs(uint64_t seed, std::string_view encoded);
// Damages a copy of the value. It is refused, or all of its parts lie within it.
void decode_damaged(Rng& rng, std::string encoded);

}  // namespace rt::sim
