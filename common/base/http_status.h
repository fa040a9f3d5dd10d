// Translates the status of an HTTP answer into an error code, for clients of HTTP interfaces.
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
    case 504:
      return Code::kUnavailable;  // The head may be starting, or a proxy in front of it answers.
    // Not kUnavailable, because the server has answered, and kUnavailable would make clients try
    // again.
    default: return Code::kInternal;
  }
}

}  // namespace rt
