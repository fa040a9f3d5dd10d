#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace rt {

// Checks that a cluster token read from `source` can be one. kInvalid, naming the source, for
// control characters, which an HTTP header cannot carry, and for anything but UTF-8, which a
// message cannot carry. Such bytes mean that a wrong file was read.
Status check_token_bytes(std::string_view token, const std::string& source);

// Whether two secrets are the same. Compares every byte whatever the outcome, so that the time
// taken does not help to guess a secret.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace rt
