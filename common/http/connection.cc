#include "common/http/connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "common/base/clock.h"
#include "common/base/percent.h"
#include "common/http/gzip.h"
#include "common/net/websocket_accept.h"

namespace rt::http {
namespace {

namespace beast = boost::beast;
constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr size_t kPieceBytes = 16 << 10;
// The line before a chunk, and the last one with the fields behind it.
constexpr size_t kMaxChunkHeadBytes = 16 << 10;
constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr int64_t kDrainMs = 5000;
// Below that the head of the answer is most of it.
constexpr size_t kPackFromBytes = 512;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr char kLength[] = "Content-Length", kTransfer[] = "Transfer-Encoding",
               kEncoding[] = "Content-Encoding";
constexpr std::string_view kMethods[] = {"GET",    "HEAD",    "POST", "PUT",
                                         "DELETE", "OPTIONS", "PATCH"};

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

// Beast joins a line that begins with a blank to the one before, as RFC 7230 allowed. RFC 9112 has
// a server refuse it: others take it for a field of its own.
bool has_folded_line(std::string_view head) {
  return head.find("\r\n ") != std::string_view::npos ||
         head.find("\r\n\t") != std::string_view::npos;
}

Refusal too_large(size_t most) {
  return {413, fmt::format("413: the body is larger than the limit of {} bytes", most)};
}

// Whether a field that Beast did not read is a length, only too large a number.
bool has_huge_length(std::string_view head) {
  const std::string_view name = kLength;
  for (size_t line = head.find("\r\n"); line != std::string_view::npos;
       line = head.find("\r\n", line)) {
    line += 2;
    const std::string_view field = head.substr(line, head.find("\r\n", line) - line);
    if (!same_but_for_case(field.substr(0, name.size()), name)) continue;
    std::string_view value = field.substr(std::min(field.size(), name.size() + 1));
    value.remove_prefix(std::min(value.size(), value.find_first_not_of(" \t")));
    if (value.size() >= 20 && value.find_first_not_of("0123456789") == std::string_view::npos)
      return true;
  }
  return false;
}

bool can_be_packed(std::string_view type) {
  type = type.substr(0, type.find(';'));
  return (type.starts_with("text/") && type != "text/event-stream") || type == "image/svg+xml" ||
         type == "application/javascript" || type == "application/json" ||
         type == "application/xml";
}

// The head of an answer as far as its body has no part in it.
std::string head_of(int status, const Headers& headers, std::string_view connection) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_of(status));
  for (const auto& [name, value] : headers) {
    // A value that ends the line would add what it likes to the answer.
    if ((name + value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos)
      head += fmt::format("{}: {}\r\n", name, value);
  }
  if (!connection.empty()) head += fmt::format("Connection: {}\r\n", connection);
  return head;
}

}  // namespace

std::string reason_of(int status) {
  return std::string(
      view_of(beast::http::obsolete_reason(static_cast<beast::http::status>(status))));
}

struct Connection::Parser {
  beast::http::request_parser<beast::http::buffer_body> parser;
};

Connection::Connection(std::unique_ptr<net::Channel> channel, int64_t io_timeout_ms,
                       const std::atomic<bool>& ending)
    : channel_(std::move(channel)), io_timeout_ms_(io_timeout_ms), ending_(ending) {}
Connection::~Connection() = default;

bool Connection::fill(int64_t timeout_ms) {
  char data[8192];
  const ssize_t n = channel_->read_some(data, sizeof data, timeout_ms);
  if (n > 0) buffer_.append(data, static_cast<size_t>(n));
  return n > 0;
}

Connection::Whole Connection::await_head(int64_t idle_ms, size_t* size) {
  const int64_t deadline = steady_now_us() + (idle_ms + io_timeout_ms_) * 1000;
  for (size_t seen = 0;;) {
    const size_t end = buffer_.find(kHeadEnd, seen);
    *size = end + kHeadEnd.size();
    if (end != std::string::npos) return *size <= kMaxHeadBytes ? Whole::kYes : Whole::kTooLarge;
    if (buffer_.size() > kMaxHeadBytes) return Whole::kTooLarge;
    seen = buffer_.size() - std::min(buffer_.size(), kHeadEnd.size());
    const int64_t left_ms = (deadline - steady_now_us()) / 1000;
    if (left_ms <= 0 || !fill(std::min(left_ms, buffer_.empty() ? idle_ms : io_timeout_ms_)))
      return Whole::kNo;
  }
}

Connection::Next Connection::read_head(int64_t idle_ms, Refusal* refusal) {
  size_t size = 0;
  const Whole whole = await_head(idle_ms, &size);
  if (whole == Whole::kNo) return Next::kNone;
  *refusal = {431, "431: the head of the request is too large"};
  if (whole == Whole::kTooLarge) return Next::kRefused;
  const std::string_view head = std::string_view(buffer_).substr(0, size);
  parser_ = std::make_unique<Parser>();
  auto& parser = parser_->parser;
  parser.header_limit(kMaxHeadBytes + 1);
  // The limit holds for a body that somebody may send, once it is unpacked.
  parser.body_limit(boost::none);
  beast::error_code error;
  const size_t used = parser.put({head.data(), head.size()}, error);
  const auto& parsed = parser.get();
  if (error == beast::http::error::bad_content_length && has_huge_length(head)) {
    *refusal = {413, "413: the body is larger than any limit"};
  } else if (error) {
    *refusal = {400, "400: this is no HTTP/1.1 request: " + error.message()};
  } else if (!parser.is_header_done() || has_folded_line(head)) {
    *refusal = {400, "400: a header field is \"Name: value\", on one line"};
  } else if (parsed.count(beast::http::field::host) > 1) {
    *refusal = {400, "400: a request has one Host"};
  } else if (std::find(std::begin(kMethods), std::end(kMethods), view_of(parsed.method_string())) ==
             std::end(kMethods)) {
    // No route has this method, so nobody would read the body.
    *refusal = {405, "405: Method Not Allowed"};
  } else {
    *refusal = {};
    buffer_.erase(0, used);
    adopt_head();
    return Next::kRequest;
  }
  return Next::kRefused;
}

void Connection::adopt_head() {
  const auto& parsed = parser_->parser.get();
  request_ = {};
  request_.method = view_of(parsed.method_string());
  request_.target = view_of(parsed.target());
  const size_t question = request_.target.find('?');
  request_.path = percent_decoded(std::string_view(request_.target).substr(0, question));
  if (question != std::string::npos)
    request_.params = query_pairs(std::string_view(request_.target).substr(question + 1));
  for (const auto& field : parsed)
    request_.headers.emplace(view_of(field.name_string()), view_of(field.value()));
}

bool Connection::asks_for_websocket() const {
  return beast::websocket::is_upgrade(parser_->parser.get());
}

bool Connection::brings_body() const {
  if (request_.has_header(kTransfer) || request_.get_header_value_count(kLength) > 1) return true;
  return request_.has_header(kLength) && request_.get_header_value(kLength) != "0";
}

Refusal Connection::check_framing(size_t most) const {
  const size_t lengths = request_.get_header_value_count(kLength),
               transfers = request_.get_header_value_count(kTransfer);
  if (lengths + transfers != 1)
    return {400, "400: give either one Content-Length or Transfer-Encoding: chunked"};
  if (transfers == 1 && !same_but_for_case(request_.get_header_value(kTransfer), "chunked"))
    return {400, "400: the only supported Transfer-Encoding is chunked"};
  // HTTP/1.0 does not have it, so an old proxy before this server may see other requests in it.
  if (transfers == 1 && parser_->parser.get().version() < 11)
    return {400, "400: Transfer-Encoding needs HTTP/1.1"};
  if (const std::string encoding = request_.get_header_value(kEncoding);
      !encoding.empty() && !same_but_for_case(encoding, "gzip") &&
      !same_but_for_case(encoding, "deflate") && !same_but_for_case(encoding, "identity"))
    return {415, "415: the supported encodings of a body are gzip and deflate"};
  if (request_.get_header_value("Content-Type").starts_with("multipart/form-data"))
    return {415, "415: multipart forms are not supported"};
  const auto length = parser_->parser.content_length();
  return length && *length > most ? too_large(most) : Refusal{};
}

bool Connection::each_piece(const std::function<bool(std::string_view)>& take) {
  auto& parser = parser_->parser;
  std::string piece(kPieceBytes, '\0');
  for (bool needs_more = false; !parser.is_done();) {
    // The parser keeps no part of the head of a chunk, and has no limit for it.
    if (needs_more && buffer_.size() > kMaxChunkHeadBytes) return false;
    // Asked again about the last chunk, it asserts that there is as much as the shortest one has.
    const size_t least = needs_more ? std::max(buffer_.size() + 1, kLastChunk.size()) : 1;
    while (buffer_.size() < least) {
      if (!fill(io_timeout_ms_)) return false;
    }
    auto& into = parser.get().body();
    into.data = piece.data();
    into.size = piece.size();
    beast::error_code error;
    buffer_.erase(0, parser.put({buffer_.data(), buffer_.size()}, error));
    needs_more = error == beast::http::error::need_more;
    if (error && !needs_more && error != beast::http::error::need_buffer) return false;
    if (!take({piece.data(), piece.size() - into.size})) return false;
  }
  return true;
}

Refusal Connection::read_body(size_t most, std::string* body) {
  if (!brings_body()) return {};
  if (Refusal refusal = check_framing(most); refusal.status != 0) return refusal;
  if (same_but_for_case(request_.get_header_value("Expect"), "100-continue") &&
      !write("HTTP/1.1 100 Continue\r\n\r\n"))
    return {400, "400: the body is incomplete"};
  bool fits = true;
  auto keep = [&](std::string_view piece) {
    fits = piece.size() <= most - body->size();
    if (fits) body->append(piece);
    return fits;
  };
  const std::string encoding = request_.get_header_value(kEncoding);
  bool whole;
  if (encoding.empty() || same_but_for_case(encoding, "identity")) {
    whole = each_piece(keep);
  } else {
    Unpacker unpacker;
    whole = each_piece([&](std::string_view piece) {
              return piece.empty() || static_cast<bool>(unpacker.add(piece, keep));
            }) &&
            unpacker.is_whole();
  }
  if (whole) return {};
  if (!fits) return too_large(most);
  return {400, "400: the body is incomplete, or is not what its headers say"};
}

bool Connection::write(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = channel_->write_some(data.data(), data.size(), io_timeout_ms_);
    if (n < 0) return false;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool Connection::packs(const Response& response) const {
  return can_be_packed(response.get_header_value("Content-Type")) &&
         !response.headers.contains(kEncoding) &&
         request_.get_header_value("Accept-Encoding").find("gzip") != std::string::npos &&
         (response.pieces || response.body.size() >= kPackFromBytes);
}

bool Connection::answer(const Response& response) {
  const auto& parsed = parser_->parser.get();
  const bool is_old = parsed.version() < 11, packed = packs(response);
  // Whatever the reason that a body is not read to its end, its rest is no request. An old client
  // reads pieces until the connection ends.
  const bool goes_on = !gives_up_ && parser_->parser.is_done() && parsed.keep_alive() &&
                       !(response.pieces && is_old);
  std::string head = head_of(response.status, response.headers,
                             !goes_on ? "close"
                             : is_old ? "keep-alive"
                                      : "");
  if (packed) head += fmt::format("{}: gzip\r\nVary: Accept-Encoding\r\n", kEncoding);
  const bool only_head = request_.method == "HEAD";
  if (response.pieces) {
    if (!is_old) head += fmt::format("{}: chunked\r\n", kTransfer);
    if (!write(head + "\r\n")) return false;
    if (!only_head && !write_pieces(response, !is_old, packed)) return false;
  } else {
    std::string body_packed;
    if (packed) body_packed = Packer().add(response.body, true);
    const std::string& body = packed ? body_packed : response.body;
    head += fmt::format("{}: {}\r\n\r\n", kLength, body.size());
    if (!only_head) head += body;
    if (!write(head)) return false;
  }
  if (gives_up_) drain();
  return goes_on;
}

bool Connection::write_pieces(const Response& response, bool in_chunks, bool packed) {
  std::optional<Packer> packer;
  if (packed) packer.emplace();
  bool sent = true;
  auto send = [&](std::string_view piece) {
    // A chunk without bytes would be the end.
    if (piece.empty()) return sent;
    sent = sent &&
           (in_chunks ? write(fmt::format("{:x}\r\n{}\r\n", piece.size(), piece)) : write(piece));
    return sent;
  };
  Sink sink(*this, [&](std::string_view piece) {
    return packer && !piece.empty() ? send(packer->add(piece, false)) : send(piece);
  });
  while (!sink.is_done()) {
    if (ending_ || !response.pieces(sink) || !sent) return false;
  }
  if (packer) send(packer->add("", true));
  return sent && (!in_chunks || write("0\r\n\r\n"));
}

void Connection::refuse(const Refusal& refusal) {
  const Headers headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  write(head_of(refusal.status, headers, "close") +
        fmt::format("{}: {}\r\n\r\n{}", kLength, refusal.text.size(), refusal.text));
}

void Connection::drain() {
  ::shutdown(channel_->fd(), SHUT_WR);
  const int64_t deadline = steady_now_us() + kDrainMs * 1000;
  char data[8192];
  for (int64_t left_ms = kDrainMs; left_ms > 0; left_ms = (deadline - steady_now_us()) / 1000) {
    if (channel_->read_some(data, sizeof data, left_ms) <= 0) return;
  }
}

Result<net::WebSocket*> Connection::become_websocket() {
  RT_ASSIGN(websocket_, net::accept_websocket(std::move(channel_), parser_->parser.get(),
                                              std::move(buffer_), io_timeout_ms_));
  return websocket_.get();
}

}  // namespace rt::http
