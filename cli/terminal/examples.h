// Examples of every command, for --help, man pages and docs/cli.md. tests/e2e/test_cli_words.py
// passes every example through the parser of its command.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rt::cli {

struct Example {
  const char* command;  // The command's name: "job submit".
  const char* line;     // The words behind the program's name.
  const char* what;     // A short explanation.
};

std::span<const Example> examples();
std::vector<Example> examples_of(const std::string& command);

}  // namespace rt::cli
