// Settings: one struct made of the table in settings.def. Loaded once in main() and passed down by const reference.
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
#define RT_SETTING(type, name, default_value, unit, meaning) type name = default_value;
#include "common/config/settings.def"
#undef RT_SETTING
};

struct SettingInfo {
  std::string name, type, default_value, unit, meaning, environment;
};
const std::vector<SettingInfo>& setting_table();

// flags > environment (RAY_<name>) > JSON file (empty path: none) > defaults. `flags` holds name -> text for those given.
// kInvalid names the source, the setting and what it accepts; unknown names in the file are errors, too.
Result<Settings> load_settings(const std::string& json_path, const std::map<std::string, std::string>& flags);
// One assignment; used by load_settings() and --system-config.
Status assign_setting(Settings& settings, const std::string& name, const std::string& text);

}  // namespace rt
