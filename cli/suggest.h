// Suggestions for mistyped words.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rt::cli {

// The word of `known` nearest to `word`: at most one edit away (two for words of five letters or
// more), where an edit inserts, deletes or replaces a letter or swaps two neighbours; else the
// first one that begins with `word`. Empty if there is none.
std::string nearest_word(const std::string& word, const Words& known);
// "; did you mean X?" for the nearest word, or an empty string.
std::string did_you_mean(const std::string& word, const Words& known);

}  // namespace rt::cli
