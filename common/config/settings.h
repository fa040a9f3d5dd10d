// Settings: one struct, made from the table in settings.def. It is loaded once in main() and passed
// down by const reference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace rt {

struct Settings {
  using int64 = int64_t;
  using string = std::string;
#define RT_SETTING(type, name, default_value, smallest, largest, unit, meaning) \
  type name = default_value;
#include "common/config/settings.def"
#undef RT_SETTING
};

// One row of the table as text, for --help and docs/configuration.md.
struct SettingInfo {
  std::string name, type, default_value, range, unit, meaning, environment;
};
const std::vector<SettingInfo>& setting_table();

// A name that programs written for Ray use for a setting: the value of `ours` is theirs times
// `factor`. When `ours` is empty, the name is accepted and has no effect.
struct RayName {
  std::string name, ours;
  int64_t factor;
};
const std::vector<RayName>& ray_name_table();
// Returns `given` under our names only; where both names of a setting are given, ours wins. Names
// without effect are left out and added to `ignored`. kInvalid when the value of one of Ray's names
// is not a number.
Result<std::map<std::string, std::string>> translate_ray_names(
    const std::map<std::string, std::string>& given, std::vector<std::string>* ignored);

// Loads the settings: `flags` override the environment (RAY_<name>), which overrides the JSON file
// (empty path: none), which overrides the defaults. `flags` holds the text of each flag that was
// given, by name; with `given_by` they are parts of that one option, such as "--system-config".
// kInvalid names the source, the setting and what it accepts. Unknown names in the file are errors,
// too; Ray's names are known.
Result<Settings> load_settings(const std::string& json_path,
                               const std::map<std::string, std::string>& flags,
                               const std::string& given_by = "");
// Assigns one setting, by our name or Ray's; for --system-config. kInvalid as above.
Status assign_setting(Settings& settings, const std::string& name, const std::string& text);

}  // namespace rt
