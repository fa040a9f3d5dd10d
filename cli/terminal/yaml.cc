#include "cli/terminal/yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>

#include "common/base/json_text.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

using api_json::Json;

constexpr int kIndent = 4;

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// The size of the character at the beginning of `text` if YAML readers do not take it as it is,
// else 0: control characters (U+0080 to U+009F are some, too), the separators U+2028 and U+2029,
// which they take for line ends, the byte order mark, and U+FFFE and U+FFFF.
size_t size_of_unreadable(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kOthers = {
      "\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF"};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < ' ' || first == 0x7f) return 1;
  if (first == 0xC2) return text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xA0 ? 2U : 0U;
  if (first != 0xE2 && first != 0xEF) return 0;
  const bool other = std::any_of(kOthers.begin(), kOthers.end(),
                                 [&](std::string_view one) { return text.starts_with(one); });
  return other ? 3U : 0U;
}

bool has_unreadable(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (size_of_unreadable(text.substr(i)) != 0) return true;
  }
  return false;
}

// The number of a character of up to three bytes.
unsigned code_of(std::string_view character) {
  const auto bits = [&](size_t i, unsigned mask) {
    return static_cast<unsigned>(static_cast<unsigned char>(character[i])) & mask;
  };
  if (character.size() == 1) return bits(0, 0x7f);
  if (character.size() == 2) return bits(0, 0x1f) << 6 | bits(1, 0x3f);
  return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
}

// Whether a YAML reader would take `text` for a number, a date, a boolean or null, not for a
// string.
bool looks_like_a_value(std::string_view text) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "null", "~", "true", "false", "yes",   "no",    "on", "off",
      "y",    "n", ".nan", ".inf",  "-.inf", "+.inf", "<<", "="};
  constexpr size_t kLongestWord = 5;
  auto is_text = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [](char mine, char its) { return lower(mine) == its; });
  };
  if (text.size() <= kLongestWord && std::any_of(kWords.begin(), kWords.end(), is_text))
    return true;
  char first = text[0] == '-' || text[0] == '+' ? (text.size() > 1 ? text[1] : '0') : text[0];
  bool begins_so =
      std::isdigit(static_cast<unsigned char>(first)) || (first == '.' && text.size() > 1);
  return begins_so &&
         text.find_first_not_of("0123456789abcdefABCDEFxXoO.+-_:eE TtZz") == std::string_view::npos;
}

bool is_plain(std::string_view text) {
  if (text.empty() || looks_like_a_value(text) || text.front() == ' ' || text.back() == ' ' ||
      text.back() == ':')
    return false;
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`";
  if (kIndicators.find(text[0]) != std::string_view::npos &&
      !((text[0] == '-' || text[0] == '?' || text[0] == ':') && text.size() > 1 && text[1] != ' '))
    return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos &&
         !text.starts_with("---") && !text.starts_with("...");
}

void write_json(const Json& value, std::string* out) { *out += json_text(value); }

// A JSON string is a valid double-quoted YAML string, once it has escapes for those characters that
// JSON takes as they are. Characters beyond U+FFFF stay, because JSON has two escapes for each,
// which YAML readers take for two characters.
void write_quoted(const std::string& text, std::string* out) {
  const std::string json = json_text(Json(text));
  for (std::string_view rest = json; !rest.empty();) {
    const size_t unreadable = size_of_unreadable(rest);
    if (unreadable != 0) {
      *out += fmt::format("\\u{:04x}", code_of(rest.substr(0, unreadable)));
    } else {
      *out += rest[0];
    }
    rest.remove_prefix(std::max<size_t>(unreadable, 1));
  }
}

void write_text(const std::string& text, std::string* out) {
  if (has_unreadable(text)) return write_quoted(text, out);
  // The size differs if there were bytes that are no UTF-8.
  if (!std::all_of(text.begin(), text.end(), is_ascii) && valid_utf8(text).size() != text.size())
    return write_quoted(text, out);
  if (is_plain(text)) {
    *out += text;
    return;
  }
  *out += '\'';
  for (char c : text) out->append(c == '\'' ? 2 : 1, c);
  *out += '\'';
}

// Writes a scalar exactly as Json::dump() does, but without the buffers dump() allocates each time.
void write_scalar(const Json& value, std::string* out) {
  // Below this number, Json writes a whole number without an exponent.
  constexpr double kExact = 1e15;
  if (value.is_string()) return write_text(value.get_ref<const std::string&>(), out);
  if (value.is_number_float()) {
    double number = value.get<double>();
    if (number < 1 || number >= kExact || number != std::floor(number))
      return write_json(value, out);
    *out += fmt::format("{}.0", static_cast<int64_t>(number));
  } else if (value.is_number_unsigned()) {
    *out += std::to_string(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    *out += std::to_string(value.get<int64_t>());
  } else if (value.is_boolean()) {
    *out += value.get<bool>() ? "true" : "false";
  } else if (value.is_null()) {
    *out += "null";
  } else {
    write_json(value, out);
  }
}

void write(const Json& value, int indent, bool in_place, std::string* out);

void write_object(const Json& object, int indent, bool in_place, std::string* out) {
  for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) {
    if (!in_place) out->append(static_cast<size_t>(indent), ' ');
    in_place = false;
    write_text(key, out);
    *out += ':';
    bool nested = value.is_structured() && !value.empty();
    *out += nested ? '\n' : ' ';
    // The dashes of a list are not indented: they stand below the first letter of its name.
    write(value, nested && value.is_object() ? indent + kIndent : indent, !nested, out);
  }
}

// With `in_place` the first line has already been indented by the caller.
void write(const Json& value, int indent, bool in_place, std::string* out) {
  if (value.is_object() && !value.empty()) return write_object(value, indent, in_place, out);
  if (value.is_array() && !value.empty()) {
    for (const Json& item : value) {
      if (!in_place) out->append(static_cast<size_t>(indent), ' ');
      in_place = false;
      *out += "-   ";
      write(item, indent + kIndent, true, out);
    }
    return;
  }
  if (!in_place) out->append(static_cast<size_t>(indent), ' ');
  if (value.is_structured()) {
    *out += value.is_object() ? "{}" : "[]";
  } else {
    write_scalar(value, out);
  }
  *out += '\n';
}

}  // namespace

std::string yaml_lines(const Json& value) {
  std::string out;
  write(value, 0, false, &out);
  return out;
}

std::string yaml_document(const Json& value) {
  std::string out = "---\n";
  write(value, 0, false, &out);
  return out += "...\n";
}

}  // namespace rt::cli
