// The head of a request, looked at before cpp-httplib reads it: that one skips lines it cannot
// read, and a length that was skipped would make a body the next request.
#pragma once

#include <string_view>

#include "common/http/access.h"

namespace rt::http {

// `head`: through the empty line. 400: not as RFC 9112 has it; 405: a method that no route has,
// whose body nobody would read.
Refusal check_head(std::string_view head);

}  // namespace rt::http
