// Who may ask what: the token in its three places, and browsers kept from acting for other sites.
#pragma once

#include <string>

#include "common/http/server.h"

namespace rt::http {

inline constexpr char kTokenCookie[] = "ray-authentication-token";

struct Refusal {
  int status = 0;  // 0: none
  std::string text;
};

// "Authorization: Bearer T", "X-Ray-Authorization: Bearer T", or the cookie: the token, or the
// secret of a session, which may only read.
Refusal check_token(const Request& request, const std::string& token, const Sessions& sessions,
                    int64_t now_s);
// The cookie's value; empty without it.
std::string token_cookie(const Request& request);
// GET, HEAD, OPTIONS.
bool reads_only(const Request& request);
// Requests that look like a browser's may read only, and not for a page of another site. That is
// one whose Origin names another host and port than Host does: it starts no WebSocket, and gets
// nothing by the cookie, which browsers add to whatever any page asks. (Whoever has the token for a
// header got it from a person.)
Refusal check_browser(const Request& request, bool websocket);
bool is_browser(const Request& request);

// Compares in a time that depends on neither text.
bool same_secret(const std::string& a, const std::string& b);

}  // namespace rt::http
