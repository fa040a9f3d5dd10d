#include "common/http/lazy/lazy_server.h"

#include <unistd.h>

#include "common/base/log.h"
#include "common/base/module.h"
#include "common/http/module/endpoint.h"

namespace rt::http {
namespace {

int answered(void* context, const char* path, void (*put)(void*, const char*, size_t), void* sink) {
  LazyServer::Reply reply = (*static_cast<LazyServer::Answer*>(context))(path);
  put(sink, reply.body.data(), reply.body.size());
  return reply.status;
}

}  // namespace

LazyServer::LazyServer(std::string token, int max_connections, const tls::Tls* tls, Answer answer)
    : token_(std::move(token)),
      max_connections_(max_connections),
      tls_(tls),
      answer_(std::make_unique<Answer>(std::move(answer))) {}

LazyServer::~LazyServer() {
  listener_.reset();
  if (!server_) return;
  api_->close(server_);
  // Threads that still answer use it after the end of the server.
  (void)answer_.release();
}

Result<std::unique_ptr<LazyServer>> LazyServer::listen_fd(net::Loop& loop, int fd,
                                                          std::string token, int max_connections,
                                                          const tls::Tls* tls, Answer answer) {
  std::unique_ptr<LazyServer> server(
      new LazyServer(std::move(token), max_connections, tls, std::move(answer)));
  RT_ASSIGN(server->listener_, loop.listen_fd(fd, [lazy = server.get()](int connected) {
    lazy->accepted(connected);
  }));
  return server;
}

void LazyServer::accepted(int fd) {
  if (!server_ && !failed_) failed_ = !load();
  if (server_) {
    api_->serve(server_, fd);
  } else {
    ::close(fd);
  }
}

bool LazyServer::load() {
  auto entry = load_module("libray_http.so", "ray_http");
  if (!entry) {
    RT_WARN("cannot answer HTTP requests: {}", entry.error().message);
    return false;
  }
  api_ = reinterpret_cast<decltype(&ray_http)>(*entry)();
  if (api_->version == RAY_HTTP_VERSION)
    server_ = api_->open(token_.c_str(), max_connections_, tls_, &answered, answer_.get());
  if (!server_)
    RT_WARN("cannot answer HTTP requests: libray_http.so belongs to another release: reinstall");
  return server_ != nullptr;
}

}  // namespace rt::http
