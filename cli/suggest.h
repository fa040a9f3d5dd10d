// What a mistyped word may have meant.
#pragma once

#include <string>

#include "cli/command_info.h"

namespace rt::cli {

// The nearest of `known`: a slip or two away (a letter too many, too few, another, two exchanged),
// or begun the same. Empty: none is near.
std::string nearest(const std::string& word, const Words& known);
// "; did you mean X?", or nothing.
std::string did_you_mean(const std::string& word, const Words& known);

}  // namespace rt::cli
