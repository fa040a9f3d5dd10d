// The tables of commands as people read them.
#pragma once

#include <string>
#include <vector>

#include "cli/command_info.h"
#include "cli/examples.h"

namespace rt::cli {

// "Usage: rayctl NAME [options] ID", as typed.
std::string usage_line(const CommandInfo& info);
// "-o, --output FILE"
std::string option_heading(const OptionInfo& option);
// One command's: usage, summary, options, examples.
std::string help_text(const CommandInfo& info, const std::vector<Example>& examples);
// Of a group ("job") or, with an empty name, of the program: the commands in it.
std::string commands_text(const std::string& group, const std::vector<CommandInfo>& all);
// `text` in lines of at most `width` columns, the later ones indented by `indent`.
std::string wrapped(const std::string& text, size_t indent, size_t width);

}  // namespace rt::cli
