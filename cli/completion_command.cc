// `rayctl completion` prints the shells' scripts; the hidden `__complete` answers them.
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/terminal/completion.h"
#include "cli/terminal/print.h"

namespace rt::cli {

int run_completion(const Words& words) {
  CommandLine line("completion",
                   "Prints a script that completes commands, options and values in bash, zsh or "
                   "fish: `source <(rayctl completion bash)`.");
  line.positional("SHELL", true, "bash|zsh|fish");
  if (auto code = line.parse(words)) return *code;
  auto script = completion_script(line.get("SHELL"), program_name());
  if (!script)
    return usage_error("completion",
                       fmt::format("'{}' is not a supported shell: use bash, zsh or fish",
                                   excerpt(line.get("SHELL"))));
  print("{}", *script);
  return kExitOk;
}

// The words are not parsed: they are the user's unfinished line and may look like options.
int run_complete(const Words& words) {
  for (const Candidate& candidate : complete(command_infos(), words))
    print("{}\t{}\n", candidate.word, candidate.what);
  return kExitOk;
}

}  // namespace rt::cli
