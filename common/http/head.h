// Checks the head of a request before cpp-httplib parses it. cpp-httplib skips lines that it cannot
// read: if that were a length, the body would be taken for the next request.
#pragma once

#include <string_view>

#include "common/http/access.h"

namespace rt::http {

// `head` includes the empty line at its end. 400: it does not follow RFC 9112. 405: no route has
// this method, so nobody would read the body.
Refusal check_head(std::string_view head);

}  // namespace rt::http
