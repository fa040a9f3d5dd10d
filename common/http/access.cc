#include "common/http/access.h"

#include <fmt/core.h>

#include <algorithm>

namespace rt::http {
namespace {

constexpr char kMissing[] = "Unauthorized: Missing authentication token";
constexpr char kWrong[] = "Forbidden: Invalid authentication token";
constexpr std::string_view kBearer = "Bearer ";

// The value of a cookie; empty without it.
std::string cookie(const Request& request, std::string_view name) {
  auto [first, last] = request.headers.equal_range("Cookie");
  for (auto it = first; it != last; ++it) {
    for (std::string_view rest = it->second; !rest.empty();) {
      std::string_view one = rest.substr(0, rest.find(';'));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      one.remove_prefix(std::min(one.size(), one.find_first_not_of(' ')));
      if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=') return std::string(one.substr(name.size() + 1));
    }
  }
  return "";
}

}  // namespace

bool same_secret(const std::string& a, const std::string& b) {
  unsigned different = a.size() != b.size();
  for (size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return different == 0;
}

Refusal check_token(const Request& request, const std::string& token) {
  if (token.empty()) return {};
  for (const char* header : {"Authorization", "X-Ray-Authorization"}) {
    std::string given = request.get_header_value(header);
    if (given.empty()) continue;
    return given.starts_with(kBearer) && same_secret(given.substr(kBearer.size()), token) ? Refusal{} : Refusal{403, kWrong};
  }
  std::string given = cookie(request, kTokenCookie);
  if (given.empty()) return {401, kMissing};
  return same_secret(given, token) ? Refusal{} : Refusal{403, kWrong};
}

bool is_browser(const Request& request) {
  if (request.get_header_value("User-Agent").starts_with("Mozilla")) return true;
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    std::string name = header.first;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name == "origin" || name == "referer" || name.starts_with("sec-fetch-") || name.starts_with("access-control-request-");
  });
}

Refusal check_browser(const Request& request) {
  if (!is_browser(request)) return {};
  // "none": typed by a person. Pages of other sites may link to us, no more.
  std::string site = request.get_header_value("Sec-Fetch-Site");
  if ((site == "cross-site" || site == "same-site") && request.get_header_value("Sec-Fetch-Mode") != "navigate") {
    return {403, "Forbidden: this request comes from a page of another site"};
  }
  bool signs_in = request.method == "POST" && request.path == "/api/authenticate";
  if (request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS" || signs_in) return {};
  return {405, fmt::format("'{}' method not allowed for browser traffic.", request.method)};
}

}  // namespace rt::http
