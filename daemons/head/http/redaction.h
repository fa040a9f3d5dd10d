// What pages in a browser do not see.
#pragma once

#include "common/http/server.h"
#include "common/state/rows.h"

namespace rt::head {

// Values of the variables of runtime environments, which are secrets often enough, are "<redacted>"
// in `rows` when a browser asks (RAY_DASHBOARD_REDACT_RUNTIME_ENV=0: they are not).
void redact_for_browsers(const http::Request& request, state::Json* rows);

}  // namespace rt::head
