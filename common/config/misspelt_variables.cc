#include "common/config/misspelt_variables.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "common/base/nearest_word.h"
#include "common/config/settings.h"

namespace rt {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Lower-case names that programs set for Ray in the environment only: they are in neither table of
// settings, and docs/environment-variables.md says what they do here.
constexpr std::array kRayVariables = {"worker_faulthandler", "object_spilling_directory",
                                      "record_task_actor_creation_sites"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> misspelt_variables() {
  constexpr std::string_view kPrefix = "RAY_";
  std::vector<std::string> ours;
  for (const SettingInfo& info : setting_table()) ours.push_back(info.name);
  std::vector<std::string> known = ours;
  for (const RayName& theirs : ray_name_table()) known.push_back(theirs.name);
  known.insert(known.end(), kRayVariables.begin(), kRayVariables.end());
  std::vector<std::string> sentences;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable =
        std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!variable.starts_with(kPrefix)) continue;
    const std::string name(variable.substr(kPrefix.size()));
    if (contains(known, name)) continue;
    const std::string lower = lower_case(name);
    const bool like_a_setting = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
    if (!like_a_setting && !contains(ours, lower)) continue;
    const std::string meant = nearest_word(lower, known);
    sentences.push_back(fmt::format(
        "the environment variable {} has no effect: no setting has this name{}", variable,
        meant.empty() ? " (docs/configuration.md lists them)"
                      : fmt::format(", and the nearest one is {}{}", kPrefix, meant)));
  }
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

}  // namespace rt
