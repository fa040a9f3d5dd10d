// Every command of rayctl, from the table commands.def. Each function takes the words behind the
// command's name and returns the exit code, and lives in the file that is named after the command.
#pragma once

#include <vector>

#include "cli/terminal/command_line.h"

namespace rt::cli {

#define COMMAND(name, run, brief) int run(const Words& words);
#define WORD(name, run, brief)
#define GROUP(name, brief)
#define SUBCOMMAND(name, run, brief) int run(const Words& words);
#include "cli/commands.def"
#undef COMMAND
#undef WORD
#undef GROUP
#undef SUBCOMMAND
// Hidden commands, which help and completion do not list.
int run_complete(const Words& words);      // Called by the shells' completion scripts.
int run_man_pages(const Words& words);     // Called by the build.
int run_command_doc(const Words& words);   // Called by `make docs`.
int run_settings_doc(const Words& words);  // Called by `make docs`.

struct Command {
  enum class Kind {
    kCommand,  // "status", "job submit": takes the words behind its name.
    kWord,     // "logs task": a first word of the command above, which has the function.
    kGroup,    // "job": has subcommands and no options of its own.
  };
  const char* name;  // The name as typed.
  int (*run)(const Words&);
  const char* brief;
  Kind kind = Kind::kCommand;
};
// The commands of commands.def, in its order.
const std::vector<Command>& commands();
// The option table of each of commands(), in the same order.
std::vector<CommandInfo> command_infos();
// The names that suggestions choose from: the subcommands of `group`, or, when `group` is empty,
// the top-level commands.
Words command_names(const std::string& group = "");

}  // namespace rt::cli
