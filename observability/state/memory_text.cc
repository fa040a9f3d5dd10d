#include "observability/state/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

#include "common/base/clock.h"

namespace rt::state {
namespace {

constexpr std::array<std::pair<const char*, int64_t>, 4> kUnits = {
    {{"B", 1}, {"KB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}}};
constexpr std::array<std::pair<const char*, const char*>, 5> kKinds = {
    {{"LOCAL_REFERENCE", "Local References"},
     {"PINNED_IN_MEMORY", "Pinned"},
     {"USED_BY_PENDING_TASK", "Used by task"},
     {"CAPTURED_IN_OBJECT", "Captured in Objects"},
     {"ACTOR_HANDLE", "Actor Handles"}}};
constexpr std::array<std::pair<const char*, const char*>, 2> kGroups = {
    {{"NODE_ADDRESS", "ip"}, {"STACK_TRACE", "call_site"}}};
constexpr std::array<std::pair<const char*, const char*>, 3> kOrders = {
    {{"OBJECT_SIZE", "object_size"}, {"PID", "pid"}, {"REFERENCE_TYPE", "reference_type"}}};

template <class Table>
auto find(const Table& table, const std::string& name) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& entry) { return name == entry.first; });
}

template <class Table>
Status check(const Table& table, const std::string& value) {
  if (find(table, value) != table.end()) return {};
  std::string known;
  for (const auto& entry : table) known += (known.empty() ? "" : ", ") + std::string(entry.first);
  return make_error(Code::kInvalid, fmt::format("'{}' is not one of {}", value, known));
}

// Turns "STACK_TRACE" into "stack trace".
std::string words(std::string name) {
  for (char& c : name)
    c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// Formats a float as Python does: with at least one digit behind the point.
std::string decimal(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string size_text(int64_t bytes, const std::string& units) {
  return bytes < 0 ? "?"
                   : fmt::format("{} {}",
                                 decimal(static_cast<double>(bytes) /
                                         static_cast<double>(find(kUnits, units)->second)),
                                 units);
}

std::string columns(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) line += fmt::format("{:<21}", cell);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

std::string entry_text(const Json& row, const std::string& units) {
  std::string type = row["type"], status = row["task_status"];
  type = type.empty() ? type : type.substr(0, 1) + words(type.substr(1));
  return fmt::format("{} | {} | {} | {} | {} | {} | {} | {} | {}\n", row["ip"].get<std::string>(),
                     row["pid"].get<int64_t>(), type, row["call_site"].get<std::string>(),
                     status == "NIL" ? "-" : status, row["attempt_number"].get<int64_t>(),
                     size_text(row["object_size"], units), row["reference_type"].get<std::string>(),
                     row["object_id"].get<std::string>());
}

std::string group_text(const std::string& key, const std::vector<const Json*>& rows,
                       const MemoryQuery& query) {
  int64_t bytes = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> kinds;  // Count and bytes by reference type.
  for (const Json* row : rows) {
    int64_t size = std::max<int64_t>(0, (*row)["object_size"].get<int64_t>());
    bytes += size;
    auto& kind = kinds[(*row)["reference_type"]];
    ++kind.first;
    kind.second += size;
  }
  std::vector<std::string> titles = {"Mem Used by Objects"},
                           cells = {size_text(bytes, query.units)};
  for (const auto& [kind, title] : kKinds) {
    titles.emplace_back(title);
    cells.push_back(
        fmt::format("{}, ({})", kinds[kind].first, size_text(kinds[kind].second, query.units)));
  }
  const std::string word = words(query.group_by);
  std::string text =
      fmt::format("--- Summary for {}: {} ---\n{}\n{}\n\n--- Object references for {}: {} ---\n",
                  word, key, columns(titles), columns(cells), word, key);
  text +=
      "IP Address | PID | Type | Call Site | Status | Attempt | Size | Reference Type | Object "
      "Ref\n\n";
  for (size_t i = 0;
       i < rows.size() && (query.entries < 0 || static_cast<int64_t>(i) < query.entries); ++i)
    text += entry_text(*rows[i], query.units);
  return text;
}

}  // namespace

std::string references_text(const Json& rows, const MemoryQuery& query) {
  const char* group = find(kGroups, query.group_by)->second;
  const char* order = find(kOrders, query.sort_by)->second;
  std::vector<const Json*> sorted;
  for (const Json& row : rows) sorted.push_back(&row);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Json* a, const Json* b) { return (*a)[order] < (*b)[order]; });
  std::map<std::string, std::vector<const Json*>> groups;
  for (const Json* row : sorted) groups[(*row)[group]].push_back(row);
  std::string text = fmt::format(
      "Grouping by {}...        Sorting by {}...        Display {} entries per group...\n\n\n",
      words(query.group_by), words(query.sort_by),
      query.entries < 0 ? "all" : std::to_string(query.entries));
  bool first = true;
  for (const auto& [key, members] : groups) {
    text += (std::exchange(first, false) ? "" : "\n") + group_text(key, members, query);
  }
  return text +
         "\nTo record callsite information for each ObjectRef created, set env variable "
         "RAY_record_ref_creation_sites=1\n\n";
}

std::string stores_text(const Json& stores) {
  constexpr char kTitle[] = "--- Aggregate object store stats across all nodes ---\n";
  int64_t used = 0, capacity = 0, objects = 0;
  size_t silent = 0;
  for (const Json& store : stores) {
    if (store["used"].is_null()) {
      ++silent;
      continue;
    }
    used += store["used"].get<int64_t>();
    capacity += store["capacity"].get<int64_t>();
    objects += store["objects"].get<int64_t>();
  }
  double full =
      capacity
          ? std::round(10'000.0 * static_cast<double>(used) / static_cast<double>(capacity)) / 100
          : 0;
  if (silent > 0 && silent == stores.size())
    return fmt::format("{}Plasma memory usage unknown: no object store answers\n", kTitle);
  return fmt::format("{}Plasma memory usage {} MiB, {} objects, {}% full, {}% needed{}\n", kTitle,
                     used >> 20, objects, decimal(full), decimal(full),
                     silent > 0 ? fmt::format(" (without the {} of {} object stores that do not "
                                              "answer)",
                                              silent, stores.size())
                                : "");
}

Result<Answer> memory_data(const Cluster& cluster, const MemoryQuery& query, Json* answer) {
  Answer data{Json::object()};
  const int64_t deadline_us = steady_now_us() + query.timeout_us;
  if (!query.stats_only) {
    Query question{"objects"};
    question.limit = kMaxLimit;
    // The rest of the time is for the stores.
    question.timeout_us = query.timeout_us / 2;
    RT_ASSIGN(auto objects, list(cluster, question));
    data.json["objects"] = std::move(objects.json["result"]);
    objects.json.erase("result");
    *answer = std::move(objects.json);
  }
  std::vector<std::string> missing;
  RT_ASSIGN(auto stores, store_stats(cluster, deadline_us - steady_now_us(), &missing));
  data.json["stores"] = std::move(stores.json);
  if (missing.empty()) return data;
  Json& warning = (*answer)["partial_failure_warning"];
  std::string text = warning.is_string() ? warning.get<std::string>() + "\n" : "";
  text += fmt::format("{} of the object stores did not answer, their use is unknown: {}",
                      missing.size(), fmt::join(missing, "; "));
  warning = std::move(text);
  return data;
}

Result<std::string> memory_text(const Cluster& cluster, const MemoryQuery& query, Json* answer) {
  RT_TRY(check(kGroups, query.group_by));
  RT_TRY(check(kOrders, query.sort_by));
  RT_TRY(check(kUnits, query.units));
  RT_ASSIGN(auto data, memory_data(cluster, query, answer));
  return (query.stats_only ? "" : references_text(data.json["objects"], query)) +
         stores_text(data.json["stores"]);
}

}  // namespace rt::state
