// Suggestions for mistyped words.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rt::cli {

// The word of `known` nearest to `word` (common/base/nearest_word.h), else the first one that
// begins with `word`. Empty if there is none.
std::string suggested_word(const std::string& word, const Words& known);
// "; did you mean X?" for that word, or an empty string.
std::string did_you_mean(const std::string& word, const Words& known);

}  // namespace rt::cli
