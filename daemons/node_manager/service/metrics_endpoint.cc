#include "daemons/node_manager/service/metrics_endpoint.h"

#include <fmt/core.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/http/lazy/lazy_server.h"
#include "common/net/listen.h"
#include "common/net/sockets.h"
#include "common/rpc/client.h"
#include "daemons/node_manager/service/node_metrics.h"

namespace rt::node {
namespace {

constexpr int64_t kAskTimeoutUs = 5'000'000;
constexpr int kMaxConnections = 8;

using NodeStub = proto::NodeManagerService::Stub;

// Collects the figures of one node. Shared by the threads of all connections.
struct Scraper {
  MetricsEndpointOptions options;
  Mutex mutex;
  proto::HostStats last GUARDED_BY(mutex);  // the previous reading

  Scraper(MetricsEndpointOptions given, proto::HostStats first)
      : options(std::move(given)), last(std::move(first)) {}

  Result<std::unique_ptr<rpc::SyncClient>> connect(const std::string& socket) const {
    rpc::Target target;
    target.address = net::Address::unix_socket(socket);
    rpc::Identity me;
    me.role = "client";
    me.token = options.token;
    return rpc::SyncClient::connect(target, me, kAskTimeoutUs);
  }

  Result<std::string> text();
};

Result<std::string> Scraper::text() {
  NodeScrape scrape;
  scrape.session_name = options.session_name;
  scrape.version = options.version;
  scrape.node_ip = options.node_ip;
  scrape.node_id_hex = options.node_id_hex;
  RT_ASSIGN(auto node, connect(options.node_socket));
  RT_ASSIGN(scrape.node, node->call(&proto::NodeMetricsService::Stub::GetFigures, proto::Empty(),
                                    kAskTimeoutUs));
  RT_ASSIGN(scrape.processes, node->call(&NodeStub::ListProcesses, proto::Empty(), kAskTimeoutUs));
  RT_ASSIGN(scrape.programs, node->call(&NodeStub::GetMetrics, proto::Empty(), kAskTimeoutUs));
  std::vector<int> pids = {::getpid()};
  if (!options.store_socket.empty() && !scrape.node.store_hangs()) {
    if (auto store = connect(options.store_socket)) {
      if (auto stats = (*store)->call(&proto::ObjectStoreService::Stub::GetStats, proto::Empty(),
                                      kAskTimeoutUs))
        scrape.store = std::move(*stats);
    }
  }
  if (scrape.store && scrape.store->pid() > 0) pids.push_back(scrape.store->pid());
  for (const auto& process : scrape.processes.processes()) {
    if (process.alive() && process.pid() > 0) pids.push_back(process.pid());
  }
  scrape.now = host_stats(pids, options.log_directory);
  for (const auto& usage : scrape.now.processes())
    scrape.details[usage.pid()] = metrics::process_detail(usage.pid());
  {
    MutexLock lock(mutex);
    scrape.before = std::exchange(last, scrape.now);
  }
  return node_metrics_text(scrape);
}

}  // namespace

struct MetricsEndpoint::Impl {
  std::unique_ptr<http::LazyServer> server;
};

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsEndpoint::~MetricsEndpoint() = default;
int MetricsEndpoint::port() const { return impl_->server->port(); }

Result<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::start(net::Loop& loop,
                                                                MetricsEndpointOptions options) {
  int fd = options.listen_fd;
  if (fd < 0) {
    RT_ASSIGN(fd, net::listen_on_port(options.address.host, options.address.port,
                                      "--metrics-export-port"));
  }
  auto impl = std::make_unique<Impl>();
  std::string token = options.token;
  const tls::Tls* tls = options.tls;
  // Shared, because threads of connections may still answer when the endpoint is destroyed.
  proto::HostStats first = host_load(options.log_directory);
  auto scraper = std::make_shared<Scraper>(std::move(options), std::move(first));
  auto answer = [scraper](const std::string& path) -> http::LazyServer::Reply {
    if (path != "/metrics" && path != "/") return {404, "404: Not Found"};
    auto text = scraper->text();
    if (!text)
      return {503, "cannot collect the metrics of this node: " + text.error().message + "\n"};
    return {200, std::move(*text)};
  };
  RT_ASSIGN(impl->server, http::LazyServer::listen_fd(loop, fd, std::move(token), kMaxConnections,
                                                      tls, std::move(answer)));
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(impl)));
}

}  // namespace rt::node
