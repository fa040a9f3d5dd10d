#include <fmt/core.h>

#include "cli/commands.h"

namespace rt::cli {

int run_version(const Words& words) {
  CommandLine line("version", "Prints the version.");
  if (auto code = line.parse(words)) return *code;
  fmt::print("{}, version {}\n", program_name(), RT_VERSION);
  return kExitOk;
}

}  // namespace rt::cli
