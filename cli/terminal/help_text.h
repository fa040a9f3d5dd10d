// Renders the option tables of commands as help texts.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/command_info.h"
#include "cli/terminal/examples.h"

namespace rt::cli {

// The synopsis of a command: "rayctl job status [options] ID".
std::string usage_line(const CommandInfo& info);
// "-o, --output FILE"
std::string option_heading(const OptionInfo& option);
// The whole help text of one command: usage, summary, options, examples.
std::string help_text(const CommandInfo& info, const std::vector<Example>& examples);
// The list of the commands in `group` ("job") or, when `group` is empty, in the program.
std::string commands_text(const std::string& group, const std::vector<CommandInfo>& all);
// Breaks `text` into lines of at most `width` columns. The first line is assumed to begin at column
// `indent`; the others are indented by that much.
std::string wrapped(const std::string& text, size_t indent, size_t width);

}  // namespace rt::cli
