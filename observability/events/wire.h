// Writes integers and strings as little-endian bytes, which a ByteReader reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/byte_reader.h"

namespace rt::events {

template <class T>
void put(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<uint32_t>(text.size()));
  out += text;
}

// The head of a batch of task events, which the writer and the reader share.
inline constexpr uint32_t kBatchVersion = 1, kDriverFlag = 1, kCppFlag = 4;

// Writes a varint: seven bits per byte, the lowest first. Returns the position behind it; there
// must be room for kMaxVarintBytes.
inline char* put_varint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// Maps a difference modulo 2^64 to a number that is small if the difference is near zero on either
// side.
inline uint64_t zigzag(uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 ? ~uint64_t{0} : 0);
}
inline uint64_t unzigzag(uint64_t value) { return (value >> 1) ^ (value & 1 ? ~uint64_t{0} : 0); }

// An untrusted duration in microseconds, limited to some years so that sums do not overflow.
inline int64_t duration(uint64_t us) {
  return static_cast<int64_t>(std::min(us, uint64_t{1} << 48));
}

}  // namespace rt::events
