// `rayctl help`: shows the commands there are, or the help text of one command.
#include <fmt/core.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {

int run_help(const Words& words) {
  CommandLine line("help",
                   "Shows what a command does, its options and examples; without a command, which "
                   "commands there are.");
  line.positional("COMMAND", false).positional("SUBCOMMAND", false);
  if (auto code = line.parse(words)) return *code;
  std::string name = line.get("COMMAND");
  if (line.has("SUBCOMMAND")) name += " " + line.get("SUBCOMMAND");
  auto all = command_infos();
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const CommandInfo& info) { return info.name == name; });
  // `help list tasks` shows the help of `list`, because "tasks" is a value that `list` takes.
  auto takes = [&](const CommandInfo& info) {
    const auto& places = info.positionals;
    return info.name == line.get("COMMAND") && !places.empty() &&
           std::find(places[0].choices.begin(), places[0].choices.end(), line.get("SUBCOMMAND")) !=
               places[0].choices.end();
  };
  if (found == all.end()) found = std::find_if(all.begin(), all.end(), takes);
  if (name.empty() || (found != all.end() && found->is_group)) {
    print("{}", commands_text(name, all));
    return kExitOk;
  }
  if (found == all.end()) {
    Words names;
    for (const auto& info : all) names.push_back(info.name);
    return usage_error("", "no such command: " + excerpt(name) + did_you_mean(name, names));
  }
  print("{}", help_text(*found, examples_of(found->name)));
  return kExitOk;
}

}  // namespace rt::cli
