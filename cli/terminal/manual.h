// Generates the man pages and docs/cli.md from the option tables of the commands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/terminal/command_info.h"

namespace rt::cli {

// The pages by file name: rayctl.1, rayctl-job-submit.1, ..., and ray.1, which includes rayctl.1.
std::map<std::string, std::string> man_pages(const std::vector<CommandInfo>& all,
                                             const std::string& version);
std::string command_markdown(const std::vector<CommandInfo>& all);

}  // namespace rt::cli
