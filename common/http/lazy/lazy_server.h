// An HTTP endpoint, answering GET only, for a daemon that is hardly ever asked: the server itself
// (../module/endpoint.h) is loaded when the first connection arrives.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/loop.h"

struct ray_http_api;

namespace rt::tls {
class Tls;
}

namespace rt::http {

class LazyServer {
 public:
  struct Reply {
    int status = 200;
    std::string body;
  };
  // Called in the server's threads, several at once.
  using Answer = std::function<Reply(const std::string& path)>;

  // Takes the listening descriptor. `tls` is null for plain text; it must outlive the server and
  // its threads, as Tls::of_process() does. When the module cannot be loaded, connections are
  // closed, and the log says why, once.
  static Result<std::unique_ptr<LazyServer>> listen_fd(net::Loop& loop, int fd, std::string token,
                                                       int max_connections, const tls::Tls* tls,
                                                       Answer answer);
  ~LazyServer();
  int port() const { return listener_->local_address().port; }

 private:
  LazyServer(std::string token, int max_connections, const tls::Tls* tls, Answer answer);
  void accepted(int fd);
  bool load();

  const std::string token_;
  const int max_connections_;
  const tls::Tls* tls_;
  std::unique_ptr<Answer> answer_;
  std::unique_ptr<net::Listener> listener_;
  const ray_http_api* api_ = nullptr;
  void* server_ = nullptr;
  bool failed_ = false;
};

}  // namespace rt::http
