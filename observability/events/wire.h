// Writes integers and strings as little-endian bytes, and reads them from untrusted input.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace rt::events {

static_assert(std::endian::native == std::endian::little, "written as they are in memory");

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

inline constexpr size_t kMaxVarintBytes = 10;

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

// Reads forward over untrusted bytes. Reading beyond the end returns zero or an empty string and
// makes ok() false for good.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  template <class T>
  T get() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view take(size_t n) {
    if (rest_.size() < n) {
      ok_ = false;
      return {};
    }
    std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 7 * kMaxVarintBytes; shift += 7) {
      const auto byte = get<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view string() { return take(get<uint32_t>()); }
  size_t left() const { return rest_.size(); }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace rt::events
