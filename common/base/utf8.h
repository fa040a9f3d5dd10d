// Makes text of unknown origin safe for readers of UTF-8 and for terminals.
#pragma once

#include <string>
#include <string_view>

namespace rt {

// Replaces each byte that belongs to no well-formed character (RFC 3629) with U+FFFD. With `tail`,
// an incomplete character at the end is left out, and `*tail` says how many bytes it has so far;
// without, these bytes are replaced, too.
std::string valid_utf8(std::string_view text, size_t* tail = nullptr);
// Makes text safe for a terminal: what others have named must not move the cursor, set titles or
// change colours. What is no UTF-8 becomes U+FFFD, control characters become \x1b and the like,
// characters that change the direction of writing \u202e and the like, line ends and tabs blanks.
// With `lines`, line ends and tabs stay.
std::string printable(std::string_view text, bool lines = false);

}  // namespace rt
