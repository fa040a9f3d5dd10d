// Text that has to be UTF-8 for whoever reads it.
#pragma once

#include <string>
#include <string_view>

namespace rt {

// Each byte that belongs to no well-formed character (RFC 3629) becomes U+FFFD. `tail`: how many bytes at the end are the beginning of a character that may
// go on, and are left out; without it they are replaced, too.
std::string valid_utf8(std::string_view text, size_t* tail = nullptr);

}  // namespace rt
