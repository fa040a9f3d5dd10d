#include "common/http/lazy_server.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/log.h"
#include "common/http/module/endpoint.h"

namespace rt::http {
namespace {

constexpr const char* kModule = "libray_http.so";

int answered(void* context, const char* path, void (*put)(void*, const char*, size_t), void* sink) {
  LazyServer::Reply reply = (*static_cast<LazyServer::Answer*>(context))(path);
  put(sink, reply.body.data(), reply.body.size());
  return reply.status;
}

}  // namespace

LazyServer::LazyServer(std::string token, int max_connections, Answer answer)
    : token_(std::move(token)), max_connections_(max_connections), answer_(new Answer(std::move(answer))) {}

LazyServer::~LazyServer() {
  listener_.reset();
  if (server_) {
    api_->close(server_);
  } else {
    delete answer_;
  }
}

Result<std::unique_ptr<LazyServer>> LazyServer::listen_fd(net::Loop& loop, int fd, std::string token, int max_connections, Answer answer) {
  std::unique_ptr<LazyServer> server(new LazyServer(std::move(token), max_connections, std::move(answer)));
  RT_ASSIGN(server->listener_, loop.listen_fd(fd, [lazy = server.get()](int connected) { lazy->accepted(connected); }));
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

// At known places from the program: build tree, installed, wheel.
bool LazyServer::load() {
  std::error_code ignored;
  std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string reason = fmt::format("{} is not near {}", kModule, own.string());
  for (const char* near : {"../lib", "lib", "."}) {
    std::filesystem::path path = own / near / kModule;
    if (!std::filesystem::exists(path, ignored)) continue;
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      reason = ::dlerror();
      continue;
    }
    auto entry = reinterpret_cast<decltype(&ray_http)>(::dlsym(handle, "ray_http"));
    api_ = entry ? entry() : nullptr;
    if (api_ && api_->version == RAY_HTTP_VERSION) server_ = api_->open(token_.c_str(), max_connections_, &answered, answer_);
    if (server_) return true;
    reason = path.string() + " is of another release";
  }
  RT_WARN("nobody is answered over HTTP: {}. It comes with this software and needs cpp-httplib", reason);
  return false;
}

}  // namespace rt::http
