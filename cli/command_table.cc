// The table of all listed commands, and the lookups in it.
#include <string>

#include "cli/commands.h"
#include "cli/terminal/help_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/suggest.h"

namespace rt::cli {
namespace {

// A group has no function of its own: it runs the one of the subcommand that its first word names.
int run_group(const std::string& group, const Words& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print("{}", commands_text(group, command_infos()));
    return words.empty() ? kExitUsage : kExitOk;
  }
  for (const Command& command : commands()) {
    if (command.name == group + " " + words[0])
      return command.run(Words(words.begin() + 1, words.end()));
  }
  return usage_error(group, "no such command: " + group + " " + excerpt(words[0]) +
                                did_you_mean(words[0], command_names(group)));
}

}  // namespace

const std::vector<Command>& commands() {
  using Kind = Command::Kind;
  static const std::vector<Command> all = {
#define COMMAND(name, run, brief) {name, run, brief},
#define WORD(name, run, brief) {name, run, brief, Kind::kWord},
#define GROUP(name, brief) \
  {name, [](const Words& words) { return run_group(name, words); }, brief, Kind::kGroup},
#define SUBCOMMAND(name, run, brief) {name, run, brief},
#include "cli/commands.def"
#undef COMMAND
#undef WORD
#undef GROUP
#undef SUBCOMMAND
  };
  return all;
}

std::vector<CommandInfo> command_infos() {
  std::vector<CommandInfo> infos;
  for (const Command& command : commands()) {
    Words words = words_of(command.name);
    const bool is_group = command.kind == Command::Kind::kGroup;
    CommandInfo info;
    if (!is_group)
      info = describe([&] {
               return command.run(command.kind == Command::Kind::kWord ? Words{words.back()}
                                                                       : Words());
             }).value_or(CommandInfo());
    info.name = command.name;
    info.brief = command.brief;
    info.is_group = is_group;
    if (info.summary.empty()) info.summary = command.brief;
    infos.push_back(std::move(info));
  }
  return infos;
}

Words command_names(const std::string& group) {
  Words names;
  for (const Command& command : commands()) {
    Words words = words_of(command.name);
    if (group.empty() ? words.size() == 1 : words.size() == 2 && words[0] == group)
      names.push_back(words.back());
  }
  return names;
}

}  // namespace rt::cli
