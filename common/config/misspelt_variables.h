// Finds variables of the environment that were meant as settings and are none, because nothing else
// tells that they have no effect.
#pragma once

#include <string>
#include <vector>

namespace rt {

// A sentence (without its full stop) for each variable of the environment that has no effect and
// looks like a setting: RAY_ and a name that begins with a lower-case letter, or a setting's name
// in other letters. It names the setting that was meant if one is near. Variables in capitals may
// be those of Ray or of other programs.
std::vector<std::string> misspelt_variables();

}  // namespace rt
