// The routes of the head's HTTP interface, a group a file; `api.cc` adds them all.
#pragma once

#include "daemons/head/http/api.h"

namespace rt::head {

void add_basic_routes(http::Server& server, const ApiContextPtr& context);      // versions, authentication, health
void add_job_routes(http::Server& server, const ApiContextPtr& context);        // /api/jobs/..., /api/packages/...
void add_state_routes(http::Server& server, const ApiContextPtr& context);      // /api/v0/...
void add_page_routes(http::Server& server);                                      // the web page

}  // namespace rt::head
