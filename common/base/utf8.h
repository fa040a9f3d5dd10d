// Text that has to be UTF-8 for whoever reads it.
#pragma once

#include <string>
#include <string_view>

namespace rt {

// Each byte that belongs to no well-formed character (RFC 3629) becomes U+FFFD. `tail`: how many
// bytes at the end are the beginning of a character that may go on, and are left out; without it
// they are replaced, too.
std::string valid_utf8(std::string_view text, size_t* tail = nullptr);
// For a terminal: what others named must not move the cursor, set titles or paint. Control
// characters become \x1b and the like, those that turn the direction of writing \u202e, ends of
// lines and tabs blanks; `lines`: ends of lines stay.
std::string printable(std::string_view text, bool lines = false);

}  // namespace rt
