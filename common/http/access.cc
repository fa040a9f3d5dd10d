#include "common/http/access.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/token.h"

namespace rt::http {
namespace {

constexpr char kMissing[] = "Unauthorized: Missing authentication token";
constexpr char kWrong[] = "Forbidden: Invalid authentication token";
constexpr char kSessionReads[] =
    "Forbidden: the session of a browser may only read; this takes the token";
constexpr std::string_view kBearer = "Bearer ";

// The value of the cookie `name`; empty when the request has none.
std::string cookie(const Request& request, std::string_view name) {
  auto [first, last] = request.headers.equal_range("Cookie");
  for (auto it = first; it != last; ++it) {
    for (std::string_view rest = it->second; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(';'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      one.remove_prefix(std::min(one.size(), one.find_first_not_of(' ')));
      if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
        return std::string(one.substr(name.size() + 1));
    }
  }
  return "";
}

std::string_view without_usual_port(std::string_view host, std::string_view scheme) {
  const std::string_view port = scheme == "http://" ? ":80" : ":443";
  if (host.ends_with(port)) host.remove_suffix(port.size());
  return host;
}

// "host:port" in lower case, without the usual port of the scheme. Empty when `origin` is no http
// or https origin, as for "null".
std::string host_of_origin(std::string origin) {
  std::transform(origin.begin(), origin.end(), origin.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  for (std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme))
      return std::string(
          without_usual_port(std::string_view(origin).substr(scheme.size()), scheme));
  }
  return "";
}

// Schemes are not compared, because TLS may end at a proxy in front of this server.
bool is_from_another_origin(const Request& request) {
  if (!request.has_header("Origin")) return false;
  const std::string origin = request.get_header_value("Origin"),
                    scheme = origin.substr(0, origin.find("//"));
  const std::string from = host_of_origin(origin);
  return from.empty() || request.get_header_value_count("Origin") > 1 ||
         from != host_of_origin(scheme + "//" + request.get_header_value("Host"));
}

// Whether the only credential is the cookie, which a browser adds by itself.
bool is_known_by_cookie(const Request& request) {
  return request.get_header_value("Authorization").empty() &&
         request.get_header_value("X-Ray-Authorization").empty() && !token_cookie(request).empty();
}

}  // namespace

std::string token_cookie(const Request& request) { return cookie(request, kTokenCookie); }

bool reads_only(const Request& request) {
  return request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
}

Refusal check_token(const Request& request, const std::string& token, const Sessions& sessions,
                    int64_t now_s) {
  if (token.empty()) return {};
  for (const char* header : {"Authorization", "X-Ray-Authorization"}) {
    std::string given = request.get_header_value(header);
    if (given.empty()) continue;
    return given.starts_with(kBearer) && same_secret(given.substr(kBearer.size()), token)
               ? Refusal{}
               : Refusal{403, kWrong};
  }
  const std::string given = token_cookie(request);
  if (given.empty()) return {401, kMissing};
  if (same_secret(given, token)) return {};
  if (!sessions.knows(given, now_s)) return {403, kWrong};
  return reads_only(request) ? Refusal{} : Refusal{403, kSessionReads};
}

bool is_browser(const Request& request) {
  if (request.get_header_value("User-Agent").starts_with("Mozilla")) return true;
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    std::string name = header.first;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    return name == "origin" || name == "referer" || name.starts_with("sec-fetch-") ||
           name.starts_with("access-control-request-");
  });
}

Refusal check_browser(const Request& request, bool websocket) {
  if (!is_browser(request)) return {};
  // Sec-Fetch-Site is "none" when a person typed the address. Pages of other sites may link here,
  // but nothing more. Browsers send the field to trustworthy addresses only, so Origin is checked
  // as well.
  std::string site = request.get_header_value("Sec-Fetch-Site");
  const bool said = (site == "cross-site" || site == "same-site") &&
                    request.get_header_value("Sec-Fetch-Mode") != "navigate";
  if (said || (is_from_another_origin(request) && (websocket || is_known_by_cookie(request)))) {
    return {403, "Forbidden: this request comes from a page of another site"};
  }
  const bool signs = request.method == "POST" &&
                     (request.path == "/api/authenticate" || request.path == "/api/sign_out");
  if (reads_only(request) || signs) return {};
  return {405, fmt::format("'{}' method not allowed for browser traffic.", request.method)};
}

}  // namespace rt::http
