// The body of a request: read only once access has been checked, and within a limit that also holds
// for its unpacked size.
#pragma once

#include <string>

#include "common/http/access.h"

namespace rt::http {

// Whether a body follows the head.
bool brings_body(const Request& request);

// Appends the body, unpacked, to `body`; nothing when there is none. Refuses contradictory or
// broken framing and packing with 400, more than `most` bytes with 413, and multipart forms with
// 415. After a refusal the connection is of no more use: the rest of the body is still to come.
Refusal read_body(const Request& request, const httplib::ContentReader& reader, size_t most,
                  std::string* body);

}  // namespace rt::http
