// Settings: one struct made of the table in settings.def. Loaded once in main() and passed down by
// const reference.
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

struct SettingInfo {
  std::string name, type, default_value, range, unit, meaning, environment;
};
const std::vector<SettingInfo>& setting_table();

// What a setting is called by programs written for Ray: theirs = ours / factor. Empty `ours`:
// accepted, and without effect.
struct RayName {
  std::string name, ours;
  int64_t factor;
};
const std::vector<RayName>& ray_name_table();
// `given` with our names only. What was given under a name without effect is left out, its name
// added to `ignored`. kInvalid: no number.
Result<std::map<std::string, std::string>> translate_ray_names(
    const std::map<std::string, std::string>& given, std::vector<std::string>* ignored);

// flags > environment (RAY_<name>) > JSON file (empty path: none) > defaults. `flags` holds name ->
// text for those given. kInvalid names the source, the setting and what it accepts; unknown names
// in the file are errors, too. Names of Ray's are known.
Result<Settings> load_settings(const std::string& json_path,
                               const std::map<std::string, std::string>& flags);
// One assignment; used by load_settings() and --system-config.
Status assign_setting(Settings& settings, const std::string& name, const std::string& text);

}  // namespace rt
