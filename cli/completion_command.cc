#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/print.h"

namespace rt::cli {

int run_completion(const Words& words) {
  CommandLine line("completion",
                   "Prints a script that completes commands, options and values in bash, zsh or "
                   "fish: `source <(rayctl completion bash)`.");
  line.positional("bash|zsh|fish", true, "bash|zsh|fish");
  if (auto code = line.parse(words)) return *code;
  auto script = completion_script(line.get("bash|zsh|fish"), program_name());
  if (!script)
    return usage_error("completion",
                       fmt::format("'{}' is no shell known here: there are bash, zsh and fish",
                                   echoed(line.get("bash|zsh|fish"))));
  print("{}", *script);
  return kExitOk;
}

// Any words may follow, also such as look like options.
int run_complete(const Words& words) {
  for (const Candidate& candidate : complete(command_infos(), words))
    print("{}\t{}\n", candidate.word, candidate.what);
  return kExitOk;
}

}  // namespace rt::cli
