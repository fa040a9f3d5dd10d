// The routes of the head's HTTP interface, a group a file; `api.cc` adds them all.
#pragma once

#include "daemons/head/http/api.h"
#include "daemons/head/http/query.h"

namespace rt::head {

void add_basic_routes(http::Server& server,
                      const ApiContextPtr& context);  // versions, authentication, health
void add_job_routes(http::Server& server, const ApiContextPtr& context,
                    const InFlight& followers);  // /api/jobs/..., /api/packages/...
void add_state_routes(http::Server& server, const ApiContextPtr& context,
                      const InFlight& questions);  // /api/v0/<resource>
void add_log_routes(http::Server& server, const ApiContextPtr& context,
                    const InFlight& followers);  // /api/v0/logs
void add_cluster_routes(http::Server& server,
                        const ApiContextPtr& context);  // nodes, actors, events, status
void add_timeline_route(http::Server& server, const ApiContextPtr& context,
                        const InFlight& questions);  // /api/v0/tasks/timeline
void add_profile_routes(http::Server& server,
                        const ApiContextPtr& context);  // stacks and flame graphs
void add_metrics_routes(
    http::Server& server,
    const ApiContextPtr& context);           // /metrics, what Prometheus scrapes, history for plots
void add_page_routes(http::Server& server);  // the web page

}  // namespace rt::head
