// Reads fields from bytes that another process has written, which need not be trusted: the frames
// of the hot path, values, task events.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/base/bytes.h"

namespace rt {

static_assert(std::endian::native == std::endian::little, "numbers are read as they are in memory");

// The longest varint of a 64-bit number: seven bits per byte, the lowest first.
inline constexpr size_t kMaxVarintBytes = 10;

// Reads forward. After a read over the end ok() is false, and that value and all further ones are
// zero or empty, so that a caller asks ok() once behind several fields.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}
  explicit ByteReader(std::string_view bytes) : ByteReader(as_bytes(bytes)) {}

  template <class T>
  T number() {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
    T value{};
    if (left() < sizeof(T)) return fail(), value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  // A number as a varint; fails if it is longer than one may be.
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * kMaxVarintBytes; shift += 7) {
      const auto byte = number<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail(), 0;
  }
  // The number of elements that follow, each of at least `size` bytes. Fails on a number that does
  // not fit into the rest, so that nobody makes room for elements that are not there.
  uint32_t count(size_t size) {
    const auto n = number<uint32_t>();
    return n <= left() / size ? n : (fail(), 0);
  }
  // The next `n` bytes, as they lie there.
  Bytes take(size_t n) {
    if (left() < n) return fail(), Bytes{};
    Bytes bytes{at_, n};
    at_ += n;
    return bytes;
  }
  std::string_view text(size_t n) { return as_view(take(n)); }
  // A text behind its length.
  std::string_view text() { return text(number<uint32_t>()); }

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

 private:
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

}  // namespace rt
