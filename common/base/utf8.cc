#include "common/base/utf8.h"

namespace rt {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The size of the character at the front of `text`, in bytes. 0: there is no well-formed one. -n:
// the text ends after the first n bytes of a character.
int character(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = at(0);
  if (first < 0x80) return 1;
  int size = first >= 0xc2 && first < 0xe0   ? 2
             : first >= 0xe0 && first < 0xf0 ? 3
             : first >= 0xf0 && first < 0xf5 ? 4
                                             : 0;
  for (int i = 1; i < size; ++i) {
    if (static_cast<size_t>(i) == text.size()) return -i;
    unsigned char low = 0x80, high = 0xbf;
    if (i == 1 && first == 0xe0) low = 0xa0;   // Overlong forms are refused.
    if (i == 1 && first == 0xed) high = 0x9f;  // Surrogates are refused.
    if (i == 1 && first == 0xf0) low = 0x90;
    if (i == 1 && first == 0xf4) high = 0x8f;  // Characters beyond U+10FFFF are refused.
    if (at(i) < low || at(i) > high) return 0;
  }
  return size;
}

// The size of the character at the front, in bytes, if it changes the direction of what follows
// (U+202A to U+202E, U+2066 to U+2069); else 0.
size_t bidirectional(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xe2') return 0;
  const auto second = static_cast<unsigned char>(text[1]),
             third = static_cast<unsigned char>(text[2]);
  return (second == 0x80 && third >= 0xaa && third <= 0xae) ||
                 (second == 0x81 && third >= 0xa6 && third <= 0xa9)
             ? 3
             : 0;
}

}  // namespace

std::string valid_utf8(std::string_view text, size_t* tail) {
  std::string out;
  out.reserve(text.size());
  if (tail) *tail = 0;
  while (!text.empty()) {
    int size = character(text);
    if (size < 0 && tail) {
      *tail = text.size();
      break;
    }
    out.append(size > 0 ? text.substr(0, static_cast<size_t>(size)) : kReplacement);
    text.remove_prefix(size > 0 ? static_cast<size_t>(size) : 1);
  }
  return out;
}

std::string printable(std::string_view given, bool lines) {
  constexpr char kHex[] = "0123456789abcdef";
  const std::string text = valid_utf8(given);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters, too.
    const bool second =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    const auto control = second ? static_cast<unsigned char>(text[++i]) : byte;
    if (const size_t size = bidirectional(std::string_view(text).substr(i)); size != 0) {
      const auto code = static_cast<unsigned>(
          ((byte & 0x0f) << 12) | ((static_cast<unsigned char>(text[i + 1]) & 0x3f) << 6) |
          (static_cast<unsigned char>(text[i + 2]) & 0x3f));
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(code >> shift) & 15];
      i += size - 1;
    } else if (byte == '\n' || byte == '\t') {
      out += lines ? text[i] : ' ';
    } else if (second || byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[control >> 4];
      out += kHex[control & 15];
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace rt
