// Finds programs, as a shell does.
#pragma once

#include <string>

namespace rt {

// Says as an error number why the file at `path` cannot be run, such as EISDIR; 0 if it can.
int why_not_runnable(const std::string& path);

// Returns the path of the program `name` in the first of the directories that has it, or "". They
// are separated by colons as in PATH, and an empty one means the current directory.
std::string find_program(const std::string& name, const std::string& directories);

}  // namespace rt
