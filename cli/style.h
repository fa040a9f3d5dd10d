// Colours, where they help: on a terminal, unless the user says otherwise.
#pragma once

#include <cstdio>
#include <string>

namespace rt::cli {

enum class Ink { kBad, kGood, kWarning, kTitle, kFaint };

// "auto", "true" or "false", as --log-color says.
void set_colours(const std::string& choice);
// Whether what is printed to `to` (stdout or stderr) has colours: --log-color, then NO_COLOR (any
// value: none), then FORCE_COLOR and CLICOLOR_FORCE (but 0: always), then whether it is a terminal
// that is not dumb.
bool coloured(std::FILE* to);
// `text`, with the escapes around it when `to` is coloured.
std::string painted(const std::string& text, Ink ink, std::FILE* to = stdout);
// Columns that `text` takes: without escapes, a character for each UTF-8 sequence.
size_t columns_of(const std::string& text);

}  // namespace rt::cli
