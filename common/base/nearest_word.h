// Finds the known word that a mistyped word is nearest to.
#pragma once

#include <string>
#include <vector>

namespace rt {

// The word of `known` nearest to `word`: at most one edit away (two for words of five letters or
// more), where an edit inserts, deletes or replaces a letter or swaps two neighbours. Empty if
// there is none.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace rt
