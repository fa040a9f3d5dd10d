// Renders rows and summaries of the state API as text. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "observability/api_json/node_json.h"
#include "observability/state/filter.h"

namespace rt::cli {

// Replaces times and sizes in milliseconds and bytes by readable texts. The names of the columns
// tell which they are.
api_json::Json humanized(api_json::Json row);

// `format` is "default", "table", "json" or "yaml"; "default" is a table, or YAML with `detail`.
// `stamp` is the time to show in the header.
std::string list_text(api_json::Json rows, const std::string& format, bool detail,
                      const std::string& stamp);
// `resource` is "tasks", "actors" or "objects".
std::string summary_text(const std::string& resource, const api_json::Json& summary,
                         const std::string& stamp);
// The answer of state::list_logs(), below the line `place`, which names the node.
std::string log_listing(const std::string& place, const api_json::Json& files);

// Parses "key=value" or "key!=value"; kInvalid otherwise.
Result<state::Filter> parse_filter(const std::string& text);

}  // namespace rt::cli
