// What `ray memory` shows: who refers to objects, by node or by place in the program, and how full
// the object stores are.
#pragma once

#include <string>

#include "common/state/query.h"

namespace rt::state {

struct MemoryQuery {
  std::string group_by = "NODE_ADDRESS";  // or STACK_TRACE
  std::string sort_by = "OBJECT_SIZE";    // or PID, REFERENCE_TYPE
  std::string units = "B";                // or KB, MB, GB: powers of 1000
  bool stats_only = false;
  int64_t entries = -1;  // of each group; -1: all
  int64_t timeout_us = 30'000'000;
};
// What that is made of: {"objects": rows, unless stats_only, "stores": [...]}. `answer`: as below.
Result<Answer> memory_data(const Cluster& cluster, const MemoryQuery& query, Json* answer);
// kInvalid: an unknown group, order or unit. `answer` gets what the list of objects lacks (its
// warnings), where one was asked for.
Result<std::string> memory_text(const Cluster& cluster, const MemoryQuery& query, Json* answer);

// The parts, of rows of list("objects") and of store_stats().
std::string references_text(const Json& rows, const MemoryQuery& query);
std::string stores_text(const Json& stores);

}  // namespace rt::state
