#include "daemons/head/http/api.h"

#include "common/http/server.h"
#include "common/net/address.h"
#include "common/net/listen.h"
#include "daemons/head/http/routes.h"

namespace rt::head {
namespace {

constexpr int kPortsToTry = 50;
constexpr const char* kPortOption = "--dashboard-port";
// More connections than questions that are answered at once, so that further questions are refused
// with a reason and not left waiting.
constexpr int kMaxConnections = 256;
constexpr int kMaxFollowers = 128;

http::ServerOptions server_options(const ApiContext& context) {
  http::ServerOptions options;
  options.token = context.cluster.token;
  options.max_connections = kMaxConnections;
  // If TLS could not be set up, the start of the RPC server has failed with the error.
  if (const auto& tls = tls::Tls::of_process()) options.tls = *tls;
  return options;
}

Result<int> bind(const ApiOptions& options) {
  if (options.port != ApiOptions::kAnyOfDefault)
    return net::listen_on_port(options.host, options.port, kPortOption);
  Result<int> fd = Error{};
  for (int i = 0; i < kPortsToTry; ++i) {
    fd = net::listen_on_port(options.host, ApiOptions::kDefaultPort + i, kPortOption);
    if (fd) break;
  }
  return fd;
}

}  // namespace

Api::Api(net::Loop& loop, ApiContext context)
    : server_(std::make_unique<http::Server>(loop, server_options(context))) {
  auto shared = std::make_shared<const ApiContext>(std::move(context));
  const QuestionLimit questions = QuestionLimit::from_environment();
  add_page_routes(*server_);
  add_basic_routes(*server_, shared);
  // Every follower occupies a connection, so their number leaves connections for questions.
  const QuestionLimit followers(kMaxFollowers, "followers of logs",
                                "; rayctl logs --follow needs no connection that lasts");
  add_job_routes(*server_, shared, followers);
  add_state_routes(*server_, shared, questions);
  add_log_routes(*server_, shared, followers);
  add_cluster_routes(*server_, shared);
  add_timeline_route(*server_, shared, questions);
  add_profile_routes(*server_, shared);
  add_metrics_routes(*server_, shared);
  add_train_routes(*server_, shared, questions);
  add_train_rank_routes(*server_, shared);
  add_train_profile_routes(*server_, shared, questions);
}

Api::~Api() = default;

Result<std::unique_ptr<Api>> Api::start(net::Loop& loop, const ApiOptions& options,
                                        ApiContext context) {
  auto api = std::unique_ptr<Api>(new Api(loop, std::move(context)));
  RT_TRY(api->listen(options));
  return api;
}

Status Api::listen(const ApiOptions& options) {
  RT_ASSIGN(int fd, bind(options));
  RT_TRY(server_->listen_fd(fd));
  std::string host = options.host == "0.0.0.0" || options.host == "::" || options.host.empty()
                         ? net::detect_node_ip()
                         : options.host;
  address_ = net::Address::tcp(host, server_->port()).to_string();
  return {};
}

}  // namespace rt::head
