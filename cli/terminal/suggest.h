// Suggests which known command or option a mistyped word may stand for.
#pragma once

#include <string>

#include "cli/terminal/command_info.h"

namespace rt::cli {

// The word of `known` nearest to `word` (common/base/nearest_word.h). The first one that begins
// with `word` is taken instead if the nearest one begins with another letter, or if there is none.
// Empty if there is no such word either.
std::string suggested_word(const std::string& word, const Words& known);
// Returns "; did you mean X?" for that word, or an empty string.
std::string did_you_mean(const std::string& word, const Words& known);

}  // namespace rt::cli
