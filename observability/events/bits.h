// Bit packing for columns of similar numbers (frame-of-reference coding): each number takes as many
// bits as the range of its block needs.
//
// Format of a column of a block: u8 width in bits (0 to 64), the smallest number as a varint, then
// the difference of each number to the smallest, packed into u64 words from the lowest bit on. The
// unused bits of the last word are zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "observability/events/wire.h"

namespace rt::events {

inline constexpr size_t kBlock = 128;  // numbers per block; the last block may have fewer

// Appends a column of 1 to kBlock numbers.
inline void put_column(std::string& out, std::span<const uint64_t> numbers) {
  uint64_t least = numbers[0], most = numbers[0], different = 0;
  // Most columns of most blocks repeat one number; this loop finds them faster than min and max do.
  for (uint64_t number : numbers) different |= number ^ least;
  if (different) {
    for (uint64_t number : numbers) {
      least = std::min(least, number);
      most = std::max(most, number);
    }
  }
  const auto width = static_cast<unsigned>(std::bit_width(most - least));
  char head[1 + kMaxVarintBytes];
  head[0] = static_cast<char>(width);
  out.append(head, static_cast<size_t>(put_varint(head + 1, least) - head));
  if (width == 0) return;
  uint64_t words[kBlock], word = 0;
  size_t count = 0;
  unsigned used = 0;
  for (uint64_t number : numbers) {
    number -= least;
    word |= number << used;
    used += width;
    if (used < 64) continue;
    words[count++] = word;
    used -= 64;
    word = used ? number >> (width - used) : 0;
  }
  if (used) words[count++] = word;
  out.append(reinterpret_cast<const char*>(words), count * sizeof(uint64_t));
}

// Reads a column of numbers.size() numbers. Returns false if the bytes are no column or are cut
// off.
inline bool get_column(ByteReader& in, std::span<uint64_t> numbers) {
  const auto width = in.number<uint8_t>();
  const uint64_t least = in.varint();
  if (!in.ok() || width > 64) return false;
  std::fill(numbers.begin(), numbers.end(), least);
  if (width == 0) return true;
  std::string_view words = in.text((numbers.size() * width + 63) / 64 * sizeof(uint64_t));
  if (!in.ok()) return false;
  auto word_at = [&](size_t i) {
    uint64_t word;
    std::memcpy(&word, words.data() + i * sizeof(word), sizeof(word));
    return word;
  };
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  size_t bit = 0;
  for (uint64_t& number : numbers) {
    uint64_t above = word_at(bit / 64) >> (bit % 64);
    if (bit % 64 + width > 64) above |= word_at(bit / 64 + 1) << (64 - bit % 64);
    number += above & mask;
    bit += width;
  }
  return true;
}

}  // namespace rt::events
