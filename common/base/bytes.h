// Spans of raw memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rt {

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

inline Bytes as_bytes(std::string_view s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}
inline std::string_view as_view(Bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

// Keeps memory of another owner (a shared-memory pin, a Python buffer, a heap blob) alive while
// something refers to it.
using Keepalive = std::shared_ptr<const void>;

// Bytes together with what keeps them valid.
struct OwnedBytes {
  Bytes bytes;
  Keepalive keepalive;
};

}  // namespace rt
