// libray_http.so: answers GET requests with text for Prometheus.
#include "common/http/module/endpoint.h"

#include "common/http/server.h"

namespace {

using namespace rt;

// http::Server wants a loop in which to accept. Here connections come from outside, by serve().
class NoLoop final : public net::Loop {
 public:
  std::function<void(int)> accept;

  int64_t now_us() const override { return 0; }
  TimerId run_after(int64_t, Task) override { return 0; }
  void cancel(TimerId) override {}
  void post(Task) override {}
  void connect(const net::Address&, int64_t,
               std::function<void(Result<std::unique_ptr<net::Stream>>)>) override {}
  Result<std::unique_ptr<net::Listener>> listen(const net::Address&,
                                                std::function<void(int fd)>) override {
    return std::unique_ptr<net::Listener>();
  }
  Result<std::unique_ptr<net::Listener>> listen_fd(int,
                                                   std::function<void(int fd)> accepted) override {
    accept = std::move(accepted);
    return std::unique_ptr<net::Listener>();
  }
  std::unique_ptr<net::Stream> adopt(int) override { return nullptr; }
  std::unique_ptr<net::FdWatch> watch_readable(int, Task) override { return nullptr; }
};

struct Endpoint {
  Endpoint(http::ServerOptions options) : server(loop, std::move(options)) {}
  NoLoop loop;
  http::Server server;
};

void* open_server(const char* token, int max_connections, const tls::Tls* tls,
                  ray_http_answer answer, void* context) {
  http::ServerOptions options;
  options.token = token;
  options.max_connections = max_connections;
  // The pointer does not own `tls`, which outlives the server.
  options.tls = std::shared_ptr<const tls::Tls>(std::shared_ptr<void>(), tls);
  auto* endpoint = new Endpoint(std::move(options));
  endpoint->server.on("GET", "/.*", [answer, context](http::Call& call) {
    std::string body;
    auto put = [](void* sink, const char* text, size_t size) {
      static_cast<std::string*>(sink)->append(text, size);
    };
    call.response.status = answer(context, call.request.path.c_str(), put, &body);
    call.response.set_content(body, call.response.status == 200
                                        ? "text/plain; version=0.0.4; charset=utf-8"
                                        : "text/plain; charset=utf-8");
  });
  if (!endpoint->server.listen_fd(-1)) {
    delete endpoint;
    return nullptr;
  }
  return endpoint;
}

void serve(void* server, int fd) { static_cast<Endpoint*>(server)->loop.accept(fd); }
void close_server(void* server) { delete static_cast<Endpoint*>(server); }

const ray_http_api kApi = {RAY_HTTP_VERSION, open_server, serve, close_server};

}  // namespace

const ray_http_api* ray_http() { return &kApi; }
