// Training runs: /api/train/v2/runs/v1, and what a run has reported over time. Answers have no
// envelope, as in Ray.
#include <map>
#include <memory>

#include "common/base/ids.h"
#include "common/base/json_text.h"
#include "daemons/head/http/envelope.h"
#include "daemons/head/http/last_readings.h"
#include "daemons/head/http/node_view.h"
#include "daemons/head/http/redaction.h"
#include "daemons/head/http/routes.h"
#include "observability/state/lookups.h"
#include "observability/state/sources.h"
#include "observability/state/train_runs.h"

namespace rt::head {
namespace {

using http::Call;
using HeadStub = proto::HeadService::Stub;
using NodeStub = proto::NodeManagerService::Stub;

// Calls visit(worker) for the workers of all runs that are ALIVE.
template <class Visit>
void each_living_worker(state::Json& runs, Visit visit) {
  for (state::Json& run : runs) {
    for (state::Json& attempt : run["attempts"]) {
      for (state::Json& worker : attempt["workers"]) {
        if (worker["status"] == "ALIVE") visit(worker);
      }
    }
  }
}

class TrainRoutes {
 public:
  explicit TrainRoutes(ApiContextPtr context) : context_(std::move(context)) {}

  void runs(Call& call) const {
    auto found = state::train_runs(context_->cluster, kAskTimeoutUs);
    if (!found) return refuse(call, found.error());
    state::Json& runs = found->json["train_runs"];
    if (!runs.empty()) {
      // Without an answer here the runs are still worth showing.
      if (auto sources = state::Sources::connect(context_->cluster.head_address,
                                                 context_->cluster.token, kAskTimeoutUs)) {
        add_jobs(**sources, runs);
        add_processes(**sources, runs);
      }
    }
    answer(call, std::move(found->json));
  }

  void metrics(Call& call) const {
    auto found = state::train_metrics(context_->cluster, call.parts[0], kAskTimeoutUs);
    if (!found) return refuse(call, found.error());
    answer(call, std::move(found->json));
  }

 private:
  static void refuse(Call& call, const Error& error) {
    http::text(call.response, http_status(error.code), error.message);
  }

  static void answer(Call& call, state::Json json) {
    redact_for_browsers(call.request, &json);
    http::json(call.response, 200, json_text(json));
  }

  static void add_jobs(state::Sources& sources, state::Json& runs) {
    std::map<std::string, state::Json> jobs;
    if (auto all = state::all_jobs(sources)) {
      for (state::Json& row : state::job_rows(*all))
        jobs.emplace(text_of(row, "job_id"), std::move(row));
    }
    for (state::Json& run : runs) {
      auto job = jobs.find(text_of(run, "job_id"));
      run["job_details"] = job == jobs.end() ? state::Json() : job->second;
    }
  }

  static NodeId node_of(const state::Json& worker) {
    return NodeId::from_hex(text_of(worker, "node_id"));
  }

  void add_processes(state::Sources& sources, state::Json& runs) const {
    std::set<NodeId> wanted;
    each_living_worker(runs, [&](state::Json& worker) { wanted.insert(node_of(worker)); });
    readings_->keep(wanted);
    std::map<NodeId, NodeReport> reports;
    if (!wanted.empty()) ask_nodes(sources, wanted, &reports);
    for (state::Json& run : runs) {
      for (state::Json& attempt : run["attempts"]) {
        for (state::Json& worker : attempt["workers"]) worker["processStats"] = nullptr;
      }
    }
    each_living_worker(runs, [&](state::Json& worker) {
      auto report = reports.find(node_of(worker));
      if (report != reports.end())
        worker["processStats"] =
            process_stats(report->second, static_cast<int>(number_of(worker, "pid")));
    });
  }

  void ask_nodes(state::Sources& sources, const std::set<NodeId>& wanted,
                 std::map<NodeId, NodeReport>* reports) const {
    auto nodes = sources.ask_head(&HeadStub::GetNodes, proto::GetNodesRequest());
    if (!nodes) return;
    std::vector<state::Sources::Place> places;
    std::vector<NodeId> asked;
    for (const auto& node : nodes->nodes()) {
      const NodeId id = NodeId::from_binary(node.node_id());
      if (!node.alive() || !wanted.contains(id)) continue;
      places.push_back(state::Sources::place_of(node));
      asked.push_back(id);
    }
    sources.ask_each(places, &NodeStub::GetHostStats,
                     [&](size_t at, const proto::HostStats& stats) {
                       NodeReport& report = (*reports)[asked[at]];
                       report.before = readings_->exchange(asked[at], stats);
                       report.now = stats;
                       report.answered = true;
                     });
  }

  ApiContextPtr context_;
  // Shared with the copies of this object in the handlers.
  std::shared_ptr<LastReadings> readings_ = std::make_shared<LastReadings>();
};

}  // namespace

void add_train_routes(http::Server& server, const ApiContextPtr& context,
                      const QuestionLimit& questions) {
  TrainRoutes routes(context);
  server.on("GET", "/api/train/v2/runs/v1",
            questions.around([routes](Call& call) { routes.runs(call); }));
  server.on("GET", "/api/train/v2/runs/v1/([0-9a-f]+)/metrics",
            questions.around([routes](Call& call) { routes.metrics(call); }));
}

}  // namespace rt::head
