// Examples of every command, for --help, man pages and docs/cli.md. A test runs them all through
// the parser.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rt::cli {

struct Example {
  const char* command;  // whose: "job submit"
  const char* line;     // what is typed behind the program's name
  const char* what;     // what it does
};

std::span<const Example> examples();
std::vector<Example> examples_of(const std::string& command);

}  // namespace rt::cli
