#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt {

// kInvalid, with the name of where it came from, for what cannot be a token: control characters
// have no place in a header of HTTP, and anything but UTF-8 none in a message. Such bytes are those
// of a wrong file.
Status check_token_bytes(std::string_view token, const std::string& source);

}  // namespace rt
