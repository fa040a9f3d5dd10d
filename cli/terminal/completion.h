// Shell completion: the words that may follow what was typed so far, and the scripts that make the
// shells ask for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/command_info.h"

namespace rt::cli {

struct Candidate {
  std::string word;
  std::string what;  // A description, for shells that show one.
};

// `words` are the words behind the program's name; the last one is being typed and may be empty.
std::vector<Candidate> complete(const std::vector<CommandInfo>& all, const Words& words);
// Files and directories whose paths begin with `start`, sorted; directories end in '/'.
std::vector<Candidate> files_beginning(const std::string& start);

// A script for "bash", "zsh" or "fish" that runs `PROGRAM __complete WORDS...` at each tab; nullopt
// for any other shell.
std::optional<std::string> completion_script(const std::string& shell, const std::string& program);

}  // namespace rt::cli
