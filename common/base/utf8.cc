#include "common/base/utf8.h"

namespace rt {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of the character at the front: 0 when there is none, negative when as many are the beginning of one that the text ends in.
int character(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = at(0);
  if (first < 0x80) return 1;
  int size = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  for (int i = 1; i < size; ++i) {
    if (static_cast<size_t>(i) == text.size()) return -i;
    unsigned char low = 0x80, high = 0xbf;
    if (i == 1 && first == 0xe0) low = 0xa0;      // no longer forms than needed
    if (i == 1 && first == 0xed) high = 0x9f;     // no surrogates
    if (i == 1 && first == 0xf0) low = 0x90;
    if (i == 1 && first == 0xf4) high = 0x8f;     // nothing beyond U+10FFFF
    if (at(i) < low || at(i) > high) return 0;
  }
  return size;
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

std::string printable(std::string_view text, bool lines) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters, too.
    const bool second = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    const auto control = second ? static_cast<unsigned char>(text[++i]) : byte;
    if (byte == '\n' || byte == '\t') {
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
