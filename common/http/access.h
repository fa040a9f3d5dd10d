// Access control: the three places of the token, and what browsers may not do for other sites.
#pragma once

#include <string>

#include "common/http/message.h"
#include "common/http/sessions.h"

namespace rt::http {

inline constexpr char kTokenCookie[] = "ray-authentication-token";

struct Refusal {
  int status = 0;  // 0: not refused
  std::string text;
};

// Checks the token, which is in "Authorization: Bearer T", in "X-Ray-Authorization: Bearer T" or in
// the cookie. The cookie may hold the secret of a session instead, which may only read. 401: there
// is no token; 403: it is wrong, or the session may not do this. An empty `token` lets everyone in.
Refusal check_token(const Request& request, const std::string& token, const Sessions& sessions,
                    int64_t now_s);
// The value of the cookie; empty when the request has none.
std::string token_cookie(const Request& request);
// Whether the method is GET, HEAD or OPTIONS.
bool reads_only(const Request& request);
// Refuses what browsers may not do. A request that looks like a browser's may only read, apart from
// signing in and out, and may not come from a page of another site, which is one whose Origin names
// another host or port than Host does. Such a page starts no WebSocket and gets nothing by the
// cookie, since browsers add cookies to the requests of any page. (A token in a header was put
// there by somebody who has it.)
Refusal check_browser(const Request& request, bool websocket);
bool is_browser(const Request& request);

}  // namespace rt::http
