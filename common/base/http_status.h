// What a status of an HTTP answer means as an error of ours. Used by the clients of HTTP
// interfaces.
#pragma once

#include "common/base/status.h"

namespace rt {

inline Code code_of_http_status(int status) {
  switch (status) {
    case 400: return Code::kInvalid;
    case 401:
    case 403: return Code::kUnauthenticated;
    case 404: return Code::kNotFound;
    case 429: return Code::kResourceExhausted;
    case 502:
    case 503:
    case 504: return Code::kUnavailable;  // of a head that has just begun, or of a proxy before it
    default:
      return Code::kInternal;  // it answered: not kUnavailable, after which a client tries again
  }
}

}  // namespace rt
