#include "common/config/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace rt {
namespace {

// More than any count, byte size or time that makes sense, and small enough that milliseconds become microseconds without overflow.
constexpr int64_t kMaxNumber = 100'000'000'000'000;

// Parsers: false when `text` is not acceptable; accepts() says what is.
bool parse(const std::string& text, int64_t default_value, int64_t& out) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  // A negative number is a marker ("decide yourself") where the default is one, and nonsense elsewhere.
  if (error != std::errc() || stop != end || value < std::min<int64_t>(0, default_value) || value > kMaxNumber) return false;
  out = value;
  return true;
}

bool parse(const std::string& text, double, double& out) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < 0 || value > static_cast<double>(kMaxNumber)) return false;
  out = value;
  return true;
}

[[maybe_unused]] bool parse(const std::string& text, bool, bool& out) {
  if (text == "1" || text == "true" || text == "True") return out = true;
  if (text != "0" && text != "false" && text != "False") return false;
  out = false;
  return true;
}

bool parse(const std::string& text, const std::string&, std::string& out) {
  out = text;
  return true;
}

std::string accepts(int64_t default_value) { return fmt::format("a whole number from {} to {}", std::min<int64_t>(0, default_value), kMaxNumber); }
std::string accepts(double) { return fmt::format("a number from 0 to {}", kMaxNumber); }
[[maybe_unused]] std::string accepts(bool) { return "true or false"; }
std::string accepts(const std::string&) { return "text"; }

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
[[maybe_unused]] std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }

bool is_log_level(const std::string& text) { return text == "debug" || text == "info" || text == "warning" || text == "error"; }

std::string with_underscores(std::string name) {
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

Error rejected(const std::string& source, const std::string& text, const std::string& accepted) {
  return make_error(Code::kInvalid, fmt::format("{} is '{}': it takes {}", source, text, accepted));
}

// `source` names where the text came from, in the words its author would look for.
Status assign(Settings& settings, const std::string& name, const std::string& text, const std::string& source) {
  static const Settings defaults;
#define RT_SETTING(type, field, default_value, unit, meaning)                                          \
  if (name == #field) {                                                                                \
    if (parse(text, defaults.field, settings.field)) return {};                                        \
    return rejected(source, text, accepts(defaults.field) + ((unit)[0] ? " (" unit ")" : ""));         \
  }
  if (name == "log_level" && !is_log_level(text)) return rejected(source, text, "debug, info, warning or error");
#include "common/config/settings.def"
#undef RT_SETTING
  return make_error(Code::kInvalid, fmt::format("{}: there is no setting '{}' (docs/configuration.md lists them)", source, name));
}

// Out parameter: a Result<json> is ambiguous, since json converts from everything.
Status read_json(const std::string& path, nlohmann::json& json) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  if (!file || content.bad()) return make_error(Code::kInvalid, fmt::format("cannot read the config file {}: it does not exist or is not readable", path));
  json = nlohmann::json::parse(content.str(), nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (json.is_discarded()) return make_error(Code::kInvalid, fmt::format("config file {} is not valid JSON", path));
  if (!json.is_object()) return make_error(Code::kInvalid, fmt::format("config file {} must hold one JSON object of settings", path));
  return {};
}

Status apply_file(Settings& settings, const std::string& path) {
  nlohmann::json json;
  RT_TRY(read_json(path, json));
  for (const auto& [name, value] : json.items()) {
    std::string source = fmt::format("'{}' in config file {}", name, path);
    if (value.is_structured() || value.is_null()) return make_error(Code::kInvalid, source + ": a setting is a number, true, false or a string");
    RT_TRY(assign(settings, name, value.is_string() ? value.get<std::string>() : value.dump(), source));
  }
  return {};
}

}  // namespace

const std::vector<SettingInfo>& setting_table() {
  static const Settings defaults;
  static const std::vector<SettingInfo> table = {
#define RT_SETTING(type, name, default_value, unit, meaning) {#name, #type, text_of(defaults.name), unit, meaning, "RAY_" #name},
#include "common/config/settings.def"
#undef RT_SETTING
  };
  return table;
}

Status assign_setting(Settings& settings, const std::string& name, const std::string& text) {
  return assign(settings, with_underscores(name), text, "setting " + name);
}

Result<Settings> load_settings(const std::string& json_path, const std::map<std::string, std::string>& flags) {
  Settings settings;
  if (!json_path.empty()) RT_TRY(apply_file(settings, json_path));
  for (const SettingInfo& info : setting_table()) {
    if (const char* text = std::getenv(info.environment.c_str())) RT_TRY(assign(settings, info.name, text, "environment variable " + info.environment));
  }
  for (const auto& [name, text] : flags) {
    std::string flag = "--" + name;
    for (char& c : flag) {
      if (c == '_') c = '-';
    }
    RT_TRY(assign(settings, with_underscores(name), text, "flag " + flag));
  }
  return settings;
}

}  // namespace rt
