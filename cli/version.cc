// `rayctl version`: prints the version of Ray's interface and of this program.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/print.h"

namespace rt::cli {

int run_version(const Words& words) {
  CommandLine line("version",
                   "Prints the version: as `ray` that of the interface, which is Ray's, as "
                   "`rayctl` its own as well.");
  if (auto code = line.parse(words)) return *code;
  if (program_name() == "ray") {
    print("ray, version {}\n", RT_RAY_VERSION);  // scripts compare this text
  } else {
    print("{}, version {} (with the interface of Ray {})\n", program_name(), RT_VERSION,
          RT_RAY_VERSION);
  }
  return kExitOk;
}

}  // namespace rt::cli
