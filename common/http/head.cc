#include "common/http/head.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace rt::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kMethods[] = {"GET",    "HEAD",    "POST", "PUT",
                                         "DELETE", "OPTIONS", "PATCH"};
constexpr char kNoRequest[] = "400: this is no HTTP/1.1 request";

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) ||
           (c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) !=
                          std::string_view::npos);
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; });
}

Refusal check_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last || !is_token(line.substr(0, first)))
    return {400, kNoRequest};
  const std::string_view target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  if (target.empty() || target.find_first_of(" \t") != std::string_view::npos ||
      (version != "HTTP/1.1" && version != "HTTP/1.0"))
    return {400, kNoRequest};
  if (std::find(std::begin(kMethods), std::end(kMethods), line.substr(0, first)) ==
      std::end(kMethods))
    return {405, "405: Method Not Allowed"};
  return {};
}

}  // namespace

Refusal check_head(std::string_view head) {
  Refusal refusal;
  int hosts = 0;
  for (bool begins = true; !head.empty(); begins = false) {
    const size_t end = head.find(kLineEnd);
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + kLineEnd.size());
    if (has_control(line))
      return {400,
              "400: a line of the request has a control character, or does not end with CR LF"};
    if (begins) {
      refusal = check_request_line(line);
      if (refusal.status == 400) return refusal;
    } else if (!line.empty() && !is_token(line.substr(0, line.find(':')))) {
      return {
          400,
          "400: a header field is \"Name: value\", with no space before the colon, on one line"};
    } else if (!line.empty() && line.find(':') == std::string_view::npos) {
      return {400, "400: a header field without a colon"};
    }
    constexpr std::string_view kHost = "host:";
    if (!begins && line.size() >= kHost.size() &&
        strncasecmp(line.data(), kHost.data(), kHost.size()) == 0 && ++hosts > 1)
      return {400, "400: a request has one Host"};
  }
  return refusal;
}

}  // namespace rt::http
