// Hidden command of `make docs`: prints the tables of docs/configuration.md.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/terminal/print.h"
#include "common/config/settings.h"

namespace rt::cli {

int run_settings_doc(const Words& words) {
  CommandLine line("settings-doc", "Prints the table of settings as Markdown.");
  if (auto code = line.parse(words)) return *code;
  print(
      "| setting | default | range | unit | environment | meaning |\n|---|---|---|---|---|---|\n");
  for (const auto& info : setting_table()) {
    print("| `{}` | {} | {} | {} | `{}` | {} |\n", info.name, info.default_value, info.range,
          info.unit, info.environment, info.meaning);
  }
  std::string ignored;
  print(
      "\n## Names of Ray's\n\nPrograms written for Ray pass these names in `_system_config`. "
      "Each stands for the setting beside it:\n\n| Ray's name | setting |\n|---|---|\n");
  for (const auto& known : ray_name_table()) {
    if (!known.ours.empty())
      print("| `{}` | `{}`{} |\n", known.name, known.ours,
            known.factor == 1 ? "" : fmt::format(", times {}", known.factor));
    if (known.ours.empty())
      ignored += fmt::format("{}`{}`", ignored.empty() ? "" : ", ", known.name);
  }
  print(
      "\nAccepted with one warning and without effect, because this project does what they tune in "
      "another way, or not at all (README, \"What is absent\"): {}.\n",
      ignored);
  return kExitOk;
}

}  // namespace rt::cli
