#include "common/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/json_text.h"
#include "common/base/small_file.h"

namespace rt {
namespace {

// Bounds of ranges in settings.def: small enough that milliseconds can be converted to
// microseconds, and counts to int, without overflow.
constexpr int64_t kYearMs = 31'536'000'000, kHourUs = 3'600'000'000,
                  kMaxBytes = 100'000'000'000'000, kMaxCount = 1'000'000'000;

// The smallest and largest value. Booleans and texts have no range.
template <class T>
struct Range {
  T smallest, largest;
};

// Each parse() returns false when `text` is not acceptable; accepts() describes what is.
bool parse(const std::string& text, Range<int64_t> range, int64_t& out) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < range.smallest || value > range.largest)
    return false;
  out = value;
  return true;
}

bool parse(const std::string& text, Range<double> range, double& out) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < range.smallest ||
      value > range.largest)
    return false;
  out = value;
  return true;
}

bool parse(const std::string& text, Range<bool>, bool& out) {
  if (text == "1" || text == "true" || text == "True") return out = true;
  if (text != "0" && text != "false" && text != "False") return false;
  out = false;
  return true;
}

bool parse(const std::string& text, Range<std::string>, std::string& out) {
  out = text;
  return true;
}

template <class T>
Range<T> range_of([[maybe_unused]] int64_t smallest, [[maybe_unused]] int64_t largest) {
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    return {static_cast<T>(smallest), static_cast<T>(largest)};
  } else {
    return {};
  }
}

std::string text_of(Range<int64_t> range) {
  return fmt::format("{} to {}", range.smallest, range.largest);
}
std::string text_of(Range<double> range) {
  return fmt::format("{} to {}", range.smallest, range.largest);
}
std::string text_of(Range<bool>) { return ""; }
std::string text_of(const Range<std::string>&) { return ""; }

std::string accepts(Range<int64_t> range) { return "a whole number from " + text_of(range); }
std::string accepts(Range<double> range) { return "a number from " + text_of(range); }
std::string accepts(Range<bool>) { return "true or false"; }
std::string accepts(const Range<std::string>&) { return "text"; }

std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(const std::string& value) { return value; }

bool is_log_level(const std::string& text) {
  return text == "debug" || text == "info" || text == "warning" || text == "error";
}

std::string with_underscores(std::string name) {
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
}

Error rejected(const std::string& source, const std::string& text, const std::string& accepted) {
  return make_error(Code::kInvalid, fmt::format("{} is '{}': it takes {}", source, text, accepted));
}

// Assigns a setting by our name. `source` names where the text came from, in the words its author
// would look for.
Status assign_own(Settings& settings, const std::string& name, const std::string& text,
                  const std::string& source) {
#define RT_SETTING(type, field, default_value, smallest, largest, unit, meaning)      \
  if (name == #field) {                                                               \
    auto range = range_of<decltype(settings.field)>(smallest, largest);               \
    if (parse(text, range, settings.field)) return {};                                \
    return rejected(source, text, accepts(range) + ((unit)[0] ? " (" unit ")" : "")); \
  }
  if (name == "log_level" && !is_log_level(text))
    return rejected(source, text, "debug, info, warning or error");
#include "common/config/settings.def"
#undef RT_SETTING
  return make_error(
      Code::kInvalid,
      fmt::format("{}: there is no setting '{}' (docs/configuration.md lists them)", source, name));
}

const RayName* find_ray_name(const std::string& name) {
  for (const RayName& known : ray_name_table()) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

bool is_known(const std::string& name) {
  const auto& table = setting_table();
  return find_ray_name(name) ||
         std::any_of(table.begin(), table.end(), [&](const auto& own) { return own.name == name; });
}

// Converts the value of one of Ray's names to the unit of our setting.
Result<std::string> converted(const RayName& name, const std::string& text,
                              const std::string& source) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(std::abs(value) < static_cast<double>(kMaxBytes)))
    return rejected(source, text, "a number");
  return std::to_string(std::llround(value * static_cast<double>(name.factor)));
}

Status assign(Settings& settings, const std::string& name, const std::string& text,
              const std::string& source) {
  const RayName* theirs = find_ray_name(name);
  if (!theirs) return assign_own(settings, name, text, source);
  if (theirs->ours.empty()) return {};
  RT_ASSIGN(std::string value, converted(*theirs, text, source));
  return assign_own(settings, theirs->ours, value,
                    fmt::format("{} (here {})", source, theirs->ours));
}

// Returns the JSON through an out parameter: a Result<json> is ambiguous, because json converts
// from everything.
Status read_json(const std::string& path, nlohmann::json& json) {
  auto content = read_small_file(path);
  if (!content)
    return make_error(Code::kInvalid, fmt::format("cannot read the config file {}: {}", path,
                                                  content.error().message));
  json = nlohmann::json::parse(*content, nullptr, /*allow_exceptions=*/false,
                               /*ignore_comments=*/true);
  if (json.is_discarded())
    return make_error(Code::kInvalid, fmt::format("config file {} is not valid JSON", path));
  if (!json.is_object())
    return make_error(Code::kInvalid,
                      fmt::format("config file {} must hold one JSON object of settings", path));
  return {};
}

Status apply_file(Settings& settings, const std::string& path) {
  nlohmann::json json;
  RT_TRY(read_json(path, json));
  for (const auto& [name, value] : json.items()) {
    std::string source = fmt::format("'{}' in config file {}", name, path);
    if (value.is_structured() || value.is_null())
      return make_error(Code::kInvalid,
                        source + ": a setting is a number, true, false or a string");
    RT_TRY(assign(settings, name, value.is_string() ? value.get<std::string>() : json_text(value),
                  source));
  }
  return {};
}

}  // namespace

const std::vector<SettingInfo>& setting_table() {
  static const Settings defaults;
  static const std::vector<SettingInfo> table = {
#define RT_SETTING(type, name, default_value, smallest, largest, unit, meaning) \
  {#name,                                                                       \
   #type,                                                                       \
   text_of(defaults.name),                                                      \
   text_of(range_of<decltype(defaults.name)>(smallest, largest)),               \
   unit,                                                                        \
   meaning,                                                                     \
   "RAY_" #name},
#include "common/config/settings.def"
#undef RT_SETTING
  };
  return table;
}

const std::vector<RayName>& ray_name_table() {
  static const std::vector<RayName> table = {
#define RT_RAY_NAME(name, ours, factor) {#name, ours, factor},
#define RT_RAY_NAME_WITHOUT_EFFECT(name) {#name, "", 0},
#include "common/config/ray_names.def"
#undef RT_RAY_NAME
#undef RT_RAY_NAME_WITHOUT_EFFECT
  };
  return table;
}

Result<std::map<std::string, std::string>> translate_ray_names(
    const std::map<std::string, std::string>& given, std::vector<std::string>* ignored) {
  std::map<std::string, std::string> ours;
  for (const auto& [name, text] : given) {
    if (!find_ray_name(with_underscores(name))) ours[with_underscores(name)] = text;
  }
  for (const auto& [name, text] : given) {
    const RayName* theirs = find_ray_name(with_underscores(name));
    if (!theirs) continue;
    if (theirs->ours.empty()) {
      ignored->push_back(name);
      continue;
    }
    RT_ASSIGN(std::string value, converted(*theirs, text, "setting " + name));
    ours.try_emplace(theirs->ours, value);
  }
  return ours;
}

Status assign_setting(Settings& settings, const std::string& name, const std::string& text) {
  return assign(settings, with_underscores(name), text, "setting " + name);
}

Result<Settings> load_settings(const std::string& json_path,
                               const std::map<std::string, std::string>& flags,
                               const std::string& given_by) {
  Settings settings;
  if (!json_path.empty()) RT_TRY(apply_file(settings, json_path));
  for (const RayName& theirs : ray_name_table()) {
    const std::string variable = "RAY_" + theirs.name;
    if (const char* text = std::getenv(variable.c_str()))
      RT_TRY(assign(settings, theirs.name, text, "environment variable " + variable));
  }
  for (const SettingInfo& info : setting_table()) {
    if (const char* text = std::getenv(info.environment.c_str()))
      RT_TRY(assign(settings, info.name, text, "environment variable " + info.environment));
  }
  for (const auto& [name, text] : flags) {
    std::string flag = "--" + name;
    for (char& c : flag) {
      if (c == '_') c = '-';
    }
    std::string source = "flag " + flag;
    if (!given_by.empty())
      source =
          is_known(with_underscores(name)) ? fmt::format("'{}' in {}", name, given_by) : given_by;
    RT_TRY(assign(settings, with_underscores(name), text, source));
  }
  return settings;
}

}  // namespace rt
