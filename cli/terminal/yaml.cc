#include "cli/terminal/yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <string_view>

#include "common/base/json_text.h"

namespace rt::cli {
namespace {

using api_json::Json;

constexpr int kIndent = 4;

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

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

void write_text(const std::string& text, std::string* out) {
  // A JSON string is a valid double-quoted YAML string.
  if (std::any_of(text.begin(), text.end(), is_control)) return write_json(text, out);
  if (!std::all_of(text.begin(), text.end(), is_ascii)) {
    std::string clean = json_text(Json(text));
    // Another size without escapes means that invalid UTF-8 was replaced.
    if (clean.size() - 2 != text.size() && clean.find('\\') == std::string::npos) {
      *out += clean;
      return;
    }
  }
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
