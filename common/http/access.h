// Who may ask what: the token in its three places, and browsers kept from acting for other sites.
#pragma once

#include <string>

#include "common/http/server.h"

namespace rt::http {

inline constexpr char kTokenCookie[] = "ray-authentication-token";

struct Refusal {
  int status = 0;             // 0: none
  std::string text;
};

// "Authorization: Bearer T", "X-Ray-Authorization: Bearer T", or the cookie.
Refusal check_token(const Request& request, const std::string& token);
// Requests that look like a browser's may read only, and not from a page of another site.
Refusal check_browser(const Request& request);
bool is_browser(const Request& request);

// Compares in a time that depends on neither text.
bool same_secret(const std::string& a, const std::string& b);

}  // namespace rt::http
