// What a request brings behind its head: read once it is known who asks, and within a bound,
// however it is packed.
#pragma once

#include <string>

#include "common/http/access.h"

namespace rt::http {

// Bytes of it follow the head.
bool brings_body(const Request& request);

// Appends it, unpacked, to `body`; nothing where there is none. 400 for contradictory or broken
// framing and packing, 413 beyond `most` bytes, 415 for forms. After a refusal the connection is of
// no more use: the rest of the body is still to come.
Refusal read_body(const Request& request, const httplib::ContentReader& reader, size_t most,
                  std::string* body);

}  // namespace rt::http
