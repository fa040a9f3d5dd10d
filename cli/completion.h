// What the shells offer behind what was typed so far.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_info.h"

namespace rt::cli {

struct Candidate {
  std::string word;
  std::string what;  // for shells that show it
};

// `words`: those behind the program's name; the last one is being typed and may be empty.
std::vector<Candidate> complete(const std::vector<CommandInfo>& all, const Words& words);
// Files and directories whose names begin so; directories end in '/'.
std::vector<Candidate> files_beginning(const std::string& start);

// A script for "bash", "zsh" or "fish" that asks `PROGRAM __complete WORDS...` at each tab; nothing
// for another shell.
std::optional<std::string> completion_script(const std::string& shell, const std::string& program);

}  // namespace rt::cli
