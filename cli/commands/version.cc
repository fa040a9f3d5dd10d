// `rayctl version`: prints the version of Ray's interface and of this program.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/terminal/print.h"

namespace rt::cli {

int run_version(const Words& words) {
  CommandLine line("version",
                   "`ray version` prints the version of Ray whose interface this is; `rayctl "
                   "version` also this program's own.");
  if (auto code = line.parse(words)) return *code;
  if (program_name() == "ray") {
    // Scripts compare this text.
    print("ray, version {}\n", RT_RAY_VERSION);
  } else {
    print("{}, version {} (with the interface of Ray {})\n", program_name(), RT_VERSION,
          RT_RAY_VERSION);
  }
  return kExitOk;
}

}  // namespace rt::cli
