// HTTP as routes see it: a request, and the answer that they fill.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rt::http {

// Whether the two differ at most in the case of ASCII letters.
bool same_but_for_case(std::string_view a, std::string_view b);

struct LessCase {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
// By name, in any case. A name may occur several times.
using Headers = std::multimap<std::string, std::string, LessCase>;

// The first value of a name; empty when there is none.
std::string header_of(const Headers& headers, std::string_view name);

struct Request {
  std::string method;
  std::string target;  // as it was sent: the path, and the query after '?'
  std::string path;    // decoded
  // The parameters of the query, decoded, in their order.
  std::vector<std::pair<std::string, std::string>> params;
  Headers headers;

  bool has_header(std::string_view name) const { return headers.contains(name); }
  size_t get_header_value_count(std::string_view name) const { return headers.count(name); }
  std::string get_header_value(std::string_view name) const { return header_of(headers, name); }
  bool has_param(std::string_view name) const;
  // The first value of the parameter; empty when there is none.
  std::string get_param_value(std::string_view name) const;
};

// Asked by handlers that take long, in their threads.
class Client {
 public:
  virtual ~Client() = default;
  // False once nobody needs the answer: the server is ending, or the client has gone.
  virtual bool waits() const = 0;
};

// Takes an answer piece by piece.
class Sink {
 public:
  Sink(const Client& client, std::function<bool(std::string_view)> take)
      : client_(client), take_(std::move(take)) {}
  Sink(const Sink&) = delete;

  // False when the client is gone.
  bool write(const char* data, size_t size) { return take_({data, size}); }
  // The answer is whole.
  void done() { done_ = true; }
  bool is_done() const { return done_; }
  const Client& client() const { return client_; }

 private:
  const Client& client_;
  const std::function<bool(std::string_view)> take_;
  bool done_ = false;
};

struct Response {
  // Called until the answer is done. False: the answer breaks off, and the connection with it.
  using Pieces = std::function<bool(Sink&)>;

  int status = 200;
  Headers headers;
  std::string body;
  Pieces pieces;  // instead of a body, when it is set

  // Replaces what the header had.
  void set_header(const std::string& name, std::string value);
  std::string get_header_value(std::string_view name) const { return header_of(headers, name); }
  void set_content(std::string content, const std::string& type);
  void set_content(const char* data, size_t size, const std::string& type) {
    set_content(std::string(data, size), type);
  }
  // Runs in the same thread when the handler has returned.
  void set_chunked_content_provider(const std::string& type, Pieces provider);
  void set_redirect(const std::string& url);
};

// Set status, content type and body of a response.
void text(Response& response, int status, const std::string& body);
void json(Response& response, int status, const std::string& body);

}  // namespace rt::http
