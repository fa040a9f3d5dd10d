// Hides secrets from pages in a browser.
#pragma once

#include "common/http/server.h"
#include "observability/state/rows.h"

namespace rt::head {

// If a browser sent the request, replaces the values of runtime environments' variables in `rows`,
// which are often secrets, by "<redacted>". RAY_DASHBOARD_REDACT_RUNTIME_ENV=0 turns that off.
void redact_for_browsers(const http::Request& request, state::Json* rows);

}  // namespace rt::head
