// The report of `ray memory`: which processes refer to objects, grouped by node or by call site,
// and how full the object stores are.
#pragma once

#include <string>

#include "observability/state/query.h"

namespace rt::state {

struct MemoryQuery {
  std::string group_by = "NODE_ADDRESS";  // Or STACK_TRACE.
  std::string sort_by = "OBJECT_SIZE";    // Or PID, REFERENCE_TYPE.
  std::string units = "B";                // Or KB, MB, GB: powers of 1000.
  bool stats_only = false;
  int64_t entries = -1;  // The most rows of each group; -1 for all.
  int64_t timeout_us = 30'000'000;
};
// The data of the report: {"objects": rows, "stores": [...]}, without "objects" if stats_only.
// `answer` gets the warnings: the answer of list("objects") without its rows, unless stats_only,
// and the stores that did not answer. Both questions together take at most timeout_us.
Result<Answer> memory_data(const Cluster& cluster, const MemoryQuery& query, Json* answer);
// The report as text; sets `answer` as above. Returns kInvalid for an unknown group, order or unit.
Result<std::string> memory_text(const Cluster& cluster, const MemoryQuery& query, Json* answer);

// The two parts of the text, made of rows of list("objects") and of store_stats(). Pure functions.
std::string references_text(const Json& rows, const MemoryQuery& query);
std::string stores_text(const Json& stores);

}  // namespace rt::state
