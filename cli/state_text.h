// Rows and summaries of the state API as text.
#pragma once

#include <cstdint>
#include <string>

#include "common/api_json/node_json.h"
#include "common/base/status.h"
#include "common/state/filter.h"

namespace rt::cli {

// Times, sizes and durations as people read them: by the names of the columns.
api_json::Json humanized(api_json::Json row);

// "default", "table", "json" or "yaml". `stamp`: when, for the header.
std::string list_text(api_json::Json rows, const std::string& format, bool detail,
                      const std::string& stamp);
// `resource`: "tasks", "actors" or "objects".
std::string summary_text(const std::string& resource, const api_json::Json& summary,
                         const std::string& stamp);
// What list_logs() answers, below a line that names the node.
std::string log_listing(const std::string& place, const api_json::Json& files);

// What a list that was cut off says of itself, and how to see the rest.
std::string truncation_text(int64_t shown, int64_t all);

// "key=value" or "key!=value".
Result<state::Filter> parse_filter(const std::string& text);

}  // namespace rt::cli
