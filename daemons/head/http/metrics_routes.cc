// Metrics: /metrics of the cluster, the targets of Prometheus, the head's own history of the last
// hours, and whether Prometheus and Grafana answer.
#include <fmt/core.h>
#include <httplib.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/tls/tls.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/head_metrics_text.h"
#include "daemons/head/http/query.h"
#include "daemons/head/http/routes.h"
#include "observability/api_json/metrics_targets.h"
#include "observability/metrics/process.h"
#include "observability/state/sources.h"

namespace rt::head {
namespace {

using http::Call;
using HeadStub = proto::HeadService::Stub;
using MetricsStub = proto::HeadMetricsService::Stub;

constexpr int64_t kScrapeTimeoutUs = 10'000'000;
constexpr int kHealthTimeoutS = 5;
constexpr int64_t kDefaultMinutes = 60, kDefaultPoints = 300, kMaxPoints = 10'000;
constexpr int64_t kMinuteMs = 60'000;

// The use of this process. Its CPU percentage covers the time since the previous reading.
class HeadProcessUsage {
 public:
  void fill(ClusterScrape* scrape) {
    scrape->pid = ::getpid();
    auto figures = metrics::process_figures(scrape->pid);
    metrics::ProcessDetail detail = metrics::process_detail(scrape->pid);
    if (!figures) return;
    scrape->rss = figures->rss;
    scrape->shared = figures->shared;
    scrape->unique = detail.unique_bytes;
    scrape->open_files = detail.open_files;
    MutexLock lock(mutex_);
    int64_t now_us = steady_now_us();
    if (read_at_us_ > 0 && now_us > read_at_us_)
      scrape->cpu_percent = (figures->cpu_seconds - cpu_seconds_) /
                            (static_cast<double>(now_us - read_at_us_) / 1e6) * 100;
    read_at_us_ = now_us;
    cpu_seconds_ = figures->cpu_seconds;
  }

 private:
  Mutex mutex_;
  int64_t read_at_us_ GUARDED_BY(mutex_) = 0;
  double cpu_seconds_ GUARDED_BY(mutex_) = 0;
};

class MetricsRoutes {
 public:
  explicit MetricsRoutes(ApiContextPtr context) : context_(std::move(context)) {}

  void scrape(Call& call) const {
    auto text = scraped();
    if (!text)
      return http::text(
          call.response, 503,
          "cannot collect the metrics of the cluster: " + text.error().message + "\n");
    call.response.set_content(*text, "text/plain; version=0.0.4; charset=utf-8");
  }

  void targets(Call& call) const {
    auto sources = connect();
    if (!sources) return fail(call, sources.error());
    proto::GetNodesRequest request;
    request.set_alive_only(true);
    auto reply = (*sources)->ask_head(&HeadStub::GetNodes, request);
    if (!reply) return fail(call, reply.error());
    http::json(call.response, 200,
               api_json::metrics_targets({reply->nodes().begin(), reply->nodes().end()},
                                         call.request.get_header_value("Host"),
                                         tls::requested_by_environment()));
  }

  void history(Call& call) const {
    auto minutes = whole_number(call, "minutes", kDefaultMinutes, 1);
    if (!minutes) return fail(call, minutes.error());
    auto points = whole_number(call, "points", kDefaultPoints, 1);
    if (!points) return fail(call, points.error());
    proto::MetricsHistoryRequest request;
    request.set_since_ms(wall_now_us() / 1000 - std::min(*minutes, int64_t{1} << 30) * kMinuteMs);
    request.set_max_points(static_cast<int>(std::min(*points, kMaxPoints)));
    std::string nodes = call.query("node_id");
    request.set_all_nodes(nodes == "all");
    if (!nodes.empty() && nodes != "all") {
      if (!NodeId::is_valid(from_hex(nodes)))
        return fail(
            call,
            make_error(Code::kInvalid,
                       fmt::format("node_id is '{}': it takes the id of a node, or all", nodes)));
      request.add_node_ids(from_hex(nodes));
    }
    auto sources = connect();
    if (!sources) return fail(call, sources.error());
    auto reply = (*sources)->ask_head(&MetricsStub::GetHistory, request);
    if (!reply) return fail(call, reply.error());
    Json found = {{"interval_ms", reply->interval_ms()},
                  {"kept_samples", reply->kept_samples()},
                  {"most_samples", reply->most_samples()},
                  {"cluster", lines_of(reply->cluster())}};
    Json of_nodes = Json::array();
    for (const auto& node : reply->nodes()) {
      Json lines = lines_of(node);
      lines["node_id"] = to_hex(node.node_id());
      lines["node_ip"] = node.ip();
      lines["alive"] = node.alive();
      of_nodes.push_back(std::move(lines));
    }
    found["nodes"] = std::move(of_nodes);
    succeed(call, "", std::move(found), Keys::kAsTheyAre);
  }

  // Answers whether a program outside the cluster responds at the address in `variable`.
  static void health(Call& call, const char* name, const char* variable,
                     const char* default_address, const char* path) {
    std::string address = environment(variable);
    if (address.empty()) address = default_address;
    try {
      httplib::Client client(address);
      client.set_connection_timeout(kHealthTimeoutS);
      client.set_read_timeout(kHealthTimeoutS);
      auto answer = client.Get(path);
      if (answer && answer->status == 200)
        return succeed(call, fmt::format("{} is running", name), Json::object());
    } catch (const std::exception&) {
      // httplib throws for a malformed address.
    }
    fail(call, 500,
         fmt::format("{} does not answer at {}: set {} to its address", name, address, variable));
  }

 private:
  Result<std::unique_ptr<state::Sources>> connect() const {
    return state::Sources::connect(context_->cluster.head_address, context_->cluster.token,
                                   kScrapeTimeoutUs);
  }

  static Json lines_of(const proto::MetricsLines& lines) {
    Json series = Json::object(), times = Json::array();
    for (int64_t time : lines.time_ms()) times.push_back(time);
    for (const auto& line : lines.lines()) {
      Json values = Json::array();
      for (float value : line.values()) values.push_back(value);
      series[line.name()] = std::move(values);
    }
    return {{"time_ms", std::move(times)}, {"series", std::move(series)}};
  }

  Result<std::string> scraped() const {
    ClusterScrape scrape;
    scrape.session_name = context_->session_name;
    scrape.version = RT_VERSION;
    scrape.address = context_->cluster.head_address;
    RT_ASSIGN(auto sources, connect());
    RT_ASSIGN(auto nodes, sources->ask_head(&HeadStub::GetNodes, proto::GetNodesRequest()));
    scrape.nodes.assign(nodes.nodes().begin(), nodes.nodes().end());
    RT_ASSIGN(scrape.jobs, sources->ask_head(&HeadStub::GetJobs, proto::Empty()));
    RT_ASSIGN(scrape.status, sources->ask_head(&HeadStub::GetClusterStatus, proto::Empty()));
    RT_ASSIGN(scrape.head, sources->ask_head(&MetricsStub::GetHeadStats, proto::Empty()));
    RT_ASSIGN(scrape.groups, sources->ask_head(&HeadStub::ListGroups, proto::Empty()));
    RT_ASSIGN(scrape.census, state::census(context_->cluster, kScrapeTimeoutUs));
    own_->fill(&scrape);
    return cluster_metrics_text(scrape);
  }

  ApiContextPtr context_;
  std::shared_ptr<HeadProcessUsage> own_ =
      std::make_shared<HeadProcessUsage>();  // shared by copies of this object
};

}  // namespace

void add_metrics_routes(http::Server& server, const ApiContextPtr& context) {
  MetricsRoutes routes(context);
  QuestionLimit questions = QuestionLimit::from_environment();
  server.on("GET", "/metrics", questions.around([routes](Call& call) { routes.scrape(call); }));
  server.on("GET", "/api/prometheus/sd", [routes](Call& call) { routes.targets(call); });
  server.on("GET", "/api/v0/metrics/history", [routes](Call& call) { routes.history(call); });
  server.on("GET", "/api/prometheus_health", [](Call& call) {
    MetricsRoutes::health(call, "Prometheus", "RAY_PROMETHEUS_HOST", "http://127.0.0.1:9090",
                          "/-/healthy");
  });
  server.on("GET", "/api/grafana_health", [](Call& call) {
    MetricsRoutes::health(call, "Grafana", "RAY_GRAFANA_HOST", "http://127.0.0.1:3000",
                          "/api/health");
  });
}

}  // namespace rt::head
