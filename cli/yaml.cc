#include "cli/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rt::cli {
namespace {

using api_json::Json;

constexpr int kIndent = 4;

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// Number, date, "yes": what a reader of YAML would not take for text.
bool looks_like_a_value(std::string_view text) {
  static constexpr std::array kWords = {"null", "~", "true", "false", "yes", "no", "on", "off", "y", "n", ".nan", ".inf", "-.inf", "+.inf", "<<", "="};
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kWords.begin(), kWords.end(), lower) != kWords.end()) return true;
  char first = text[0] == '-' || text[0] == '+' ? (text.size() > 1 ? text[1] : '0') : text[0];
  bool begins_so = std::isdigit(static_cast<unsigned char>(first)) || (first == '.' && text.size() > 1);
  return begins_so && text.find_first_not_of("0123456789abcdefABCDEFxXoO.+-_:eE TtZz") == std::string_view::npos;
}

bool is_plain(std::string_view text) {
  if (text.empty() || looks_like_a_value(text) || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`";
  if (kIndicators.find(text[0]) != std::string_view::npos && !((text[0] == '-' || text[0] == '?' || text[0] == ':') && text.size() > 1 && text[1] != ' ')) return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos && !text.starts_with("---") && !text.starts_with("...");
}

std::string scalar(const Json& value) {
  if (!value.is_string()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::string& text = value.get_ref<const std::string&>();
  // A JSON text is a double-quoted one of YAML.
  if (std::any_of(text.begin(), text.end(), is_control)) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string clean = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (clean.size() - 2 != text.size() && clean.find('\\') == std::string::npos) return clean;      // bytes were replaced
  if (is_plain(text)) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

void write(const Json& value, int indent, bool in_place, std::string* out);

void write_object(const Json& object, int indent, bool in_place, std::string* out) {
  for (const auto& [key, value] : object.items()) {
    if (!in_place) out->append(static_cast<size_t>(indent), ' ');
    in_place = false;
    *out += scalar(Json(key)) + ":";
    bool nested = value.is_structured() && !value.empty();
    *out += nested ? "\n" : " ";
    // A list's dashes stand below the first letter of its name.
    write(value, nested && value.is_object() ? indent + kIndent : indent, !nested, out);
  }
}

// `in_place`: the line has begun.
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
  *out += value.is_object() ? "{}" : value.is_array() ? "[]" : scalar(value);
  *out += '\n';
}

}  // namespace

std::string yaml_lines(const Json& value) {
  std::string out;
  write(value, 0, false, &out);
  return out;
}

std::string yaml_document(const Json& value) { return "---\n" + yaml_lines(value) + "...\n"; }

}  // namespace rt::cli
