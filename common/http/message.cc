#include "common/http/message.h"

#include <strings.h>

#include <algorithm>
#include <compare>

#include "common/base/utf8.h"

namespace rt::http {
namespace {

std::weak_ordering order_but_for_case(std::string_view a, std::string_view b) {
  const int order = strncasecmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return order != 0 ? order <=> 0 : a.size() <=> b.size();
}

}  // namespace

bool same_but_for_case(std::string_view a, std::string_view b) {
  return order_but_for_case(a, b) == std::weak_ordering::equivalent;
}

bool LessCase::operator()(std::string_view a, std::string_view b) const {
  return order_but_for_case(a, b) < 0;
}

std::string header_of(const Headers& headers, std::string_view name) {
  const auto found = headers.lower_bound(name);
  return found == headers.end() || LessCase()(name, found->first) ? "" : found->second;
}

bool Request::has_param(std::string_view name) const {
  return std::any_of(params.begin(), params.end(),
                     [name](const auto& param) { return param.first == name; });
}

std::string Request::get_param_value(std::string_view name) const {
  const auto found = std::find_if(params.begin(), params.end(),
                                  [name](const auto& param) { return param.first == name; });
  return found == params.end() ? "" : found->second;
}

void Response::set_header(const std::string& name, std::string value) {
  headers.erase(name);
  headers.emplace(name, std::move(value));
}

void Response::set_content(std::string content, const std::string& type) {
  body = std::move(content);
  set_header("Content-Type", type);
}

void Response::set_chunked_content_provider(const std::string& type, Pieces provider) {
  pieces = std::move(provider);
  set_header("Content-Type", type);
}

void Response::set_redirect(const std::string& url) {
  status = 302;
  set_header("Location", url);
}

void text(Response& response, int status, const std::string& body) {
  response.status = status;
  // An error may repeat bytes of the request.
  response.set_content(valid_utf8(body), "text/plain; charset=utf-8");
}

void json(Response& response, int status, const std::string& body) {
  response.status = status;
  response.set_content(body, "application/json; charset=utf-8");
}

}  // namespace rt::http
