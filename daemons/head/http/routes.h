// The routes of the head's HTTP interface, each group in a file of its own. api.cc adds them all.
#pragma once

#include "common/http/server.h"
#include "daemons/head/http/api.h"
#include "daemons/head/http/query.h"

namespace rt::head {

// A route that asks the head and the nodes for its answer has it after so long, or fails.
inline constexpr int64_t kAskTimeoutUs = 10'000'000;

// Versions, authentication, health.
void add_basic_routes(http::Server& server, const ApiContextPtr& context);
// Submitted jobs: /api/jobs/... and /api/packages/...
void add_job_routes(http::Server& server, const ApiContextPtr& context,
                    const QuestionLimit& followers);
// The state API: /api/v0/<resource>.
void add_state_routes(http::Server& server, const ApiContextPtr& context,
                      const QuestionLimit& questions);
// Logs of all nodes: /api/v0/logs.
void add_log_routes(http::Server& server, const ApiContextPtr& context,
                    const QuestionLimit& followers);
// Nodes, actors, events, status.
void add_cluster_routes(http::Server& server, const ApiContextPtr& context);
// The trace of tasks: /api/v0/tasks/timeline.
void add_timeline_route(http::Server& server, const ApiContextPtr& context,
                        const QuestionLimit& questions);
// Stacks and flame graphs.
void add_profile_routes(http::Server& server, const ApiContextPtr& context);
// Whether processes may be looked into over HTTP, and what to say otherwise.
bool profiling_enabled(const ApiContext& context);
inline constexpr const char* kProfilingIsOff =
    "profiling is off: start the head with RAY_DASHBOARD_ENABLE_PROFILING=1 in its environment";
// Metrics: /metrics, the targets of Prometheus, the history for plots.
void add_metrics_routes(http::Server& server, const ApiContextPtr& context);
// Training runs: /api/train/v2/runs/v1.
void add_train_routes(http::Server& server, const ApiContextPtr& context,
                      const QuestionLimit& questions);
// Where the ranks of a training run are and spend their time: /api/train/v2/runs/v1/ID/ranks.
void add_train_rank_routes(http::Server& server, const ApiContextPtr& context);
// Profiles of training runs: /api/train/v2/runs/v1/ID/profiles and .../profile.
void add_train_profile_routes(http::Server& server, const ApiContextPtr& context,
                              const QuestionLimit& questions);
// The web page.
void add_page_routes(http::Server& server);

}  // namespace rt::head
