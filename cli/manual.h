// Man pages and docs/cli.md, from the tables of the commands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command_info.h"

namespace rt::cli {

// By file name: rayctl.1, rayctl-job-submit.1, ... and ray.1, which is the same as rayctl.1.
std::map<std::string, std::string> man_pages(const std::vector<CommandInfo>& all,
                                             const std::string& version);
std::string command_markdown(const std::vector<CommandInfo>& all);

}  // namespace rt::cli
