// Finds settings that were misspelt in the environment, where no source would be named otherwise.
#pragma once

#include <string>
#include <vector>

namespace rt {

// A sentence (without its full stop) for each variable of the environment that has no effect and
// looks like a misspelt setting: RAY_ and a name in lower case that is near to a known one, or a
// setting's name in other letters. Variables with other names may be those of other programs.
std::vector<std::string> misspelt_variables();

}  // namespace rt
