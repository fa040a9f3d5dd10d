// Colours for output: on a terminal by default, or as the user chooses.
#pragma once

#include <cstdio>
#include <string>

namespace rt::cli {

enum class Ink { kBad, kGood, kWarning, kTitle, kFaint };

// Sets the value of --log-color: "auto", "true" or "false".
void set_colours(const std::string& choice);
// Whether output to `to` (stdout or stderr) gets colours. The first of these decides: --log-color
// other than auto; NO_COLOR with any value (no); FORCE_COLOR or CLICOLOR_FORCE other than 0 (yes);
// whether `to` is a terminal that is not dumb.
bool coloured(std::FILE* to);
// `text` with escape sequences for `ink` around it, or unchanged if `to` is not coloured().
std::string painted(const std::string& text, Ink ink, std::FILE* to = stdout);
// The number of columns that `text` takes on a terminal: escape sequences take none, every UTF-8
// sequence takes one.
size_t columns_of(const std::string& text);

}  // namespace rt::cli
