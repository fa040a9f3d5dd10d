// The syntax of labels.
#pragma once

#include <cstddef>
#include <string_view>

namespace rt {

inline constexpr std::size_t kMostLabelWord = 63, kMostLabelPrefix = 253;

// A label's name is a word, after an optional prefix and '/'; its value is a word or empty. Both
// functions return true for letters, digits and some other characters, of which the first and the
// last are a letter or a digit: at most kMostLabelWord with "._-", at most kMostLabelPrefix with
// ".-".
bool is_label_word(std::string_view text);
bool is_label_prefix(std::string_view text);

}  // namespace rt
