// Hidden: docs/configuration.md's table, from the one table of settings.
#include <fmt/core.h>

#include "cli/commands.h"
#include "common/config/settings.h"

namespace rt::cli {

int run_settings_doc(const Words& words) {
  CommandLine line("settings-doc", "Prints the table of settings as Markdown.");
  if (auto code = line.parse(words)) return *code;
  fmt::print("| setting | default | unit | environment | meaning |\n|---|---|---|---|---|\n");
  for (const auto& info : setting_table()) {
    fmt::print("| `{}` | {} | {} | `{}` | {} |\n", info.name, info.default_value, info.unit, info.environment, info.meaning);
  }
  return kExitOk;
}

}  // namespace rt::cli
