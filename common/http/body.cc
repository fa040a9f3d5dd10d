#include "common/http/body.h"

#include <fmt/core.h>
#include <strings.h>

#include <charconv>
#include <optional>

namespace rt::http {
namespace {

constexpr char kLength[] = "Content-Length", kTransfer[] = "Transfer-Encoding";

// nullopt when the text is no number; SIZE_MAX when the number is too large.
std::optional<size_t> number_of_bytes(const std::string& text) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return SIZE_MAX;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Refusal check_framing(const Request& request, size_t most) {
  const size_t lengths = request.get_header_value_count(kLength),
               transfers = request.get_header_value_count(kTransfer);
  if (lengths + transfers != 1)
    return {400, "400: give either one Content-Length or Transfer-Encoding: chunked"};
  if (transfers == 1 && strcasecmp(request.get_header_value(kTransfer).c_str(), "chunked") != 0)
    return {400, "400: the only supported Transfer-Encoding is chunked"};
  if (request.is_multipart_form_data()) return {415, "415: multipart forms are not supported"};
  if (transfers == 1) return {};
  auto length = number_of_bytes(request.get_header_value(kLength));
  if (!length) return {400, "400: Content-Length is no number"};
  if (*length > most)
    return {413, fmt::format("413: the body is larger than the limit of {} bytes", most)};
  return {};
}

}  // namespace

bool brings_body(const Request& request) {
  if (request.has_header(kTransfer) || request.get_header_value_count(kLength) > 1) return true;
  return request.has_header(kLength) && request.get_header_value(kLength) != "0";
}

Refusal read_body(const Request& request, const httplib::ContentReader& reader, size_t most,
                  std::string* body) {
  if (!brings_body(request)) return {};
  if (Refusal refusal = check_framing(request, most); refusal.status != 0) return refusal;
  bool too_large = false;
  bool whole = reader([&](const char* data, size_t size) {
    too_large = size > most - body->size();
    if (!too_large) body->append(data, size);
    return !too_large;
  });
  if (whole) return {};
  if (too_large)
    return {413, fmt::format("413: the body is larger than the limit of {} bytes", most)};
  return {400, "400: the body is incomplete, or its encoding is not supported"};
}

}  // namespace rt::http
