#include "cli/debug/debug_holders.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/terminal/output.h"
#include "common/base/ids.h"
#include "observability/state/groups.h"

namespace rt::cli {
namespace {

bool is_set(const api_json::Json& row, const char* column) {
  auto it = row.find(column);
  return it != row.end() && !it->is_null();
}

// Returns the tasks and actors that run in the group, or in no group if `group_id` is empty.
std::vector<Holder> running_in(const WaitingSnapshot& snapshot, const std::string& group_id) {
  std::vector<Holder> all;
  const std::string group_hex = to_hex(group_id);
  std::map<std::string, std::pair<int64_t, ResourceSet>> tasks;
  for (const auto& row : snapshot.tasks) {
    // A task that waits with its result keeps what it has.
    const bool has_started = text_of(row, "state") == "RUNNING" || is_set(row, "start_time_ms");
    if (!has_started || text_of(row, "type") == "ACTOR_TASK" ||
        text_of(row, "placement_group_id") != group_hex)
      continue;
    auto& [count, held] = tasks[text_of(row, "func_or_class_name")];
    ++count;
    held.add(resources_from_json(row.value("required_resources", api_json::Json::object())));
  }
  for (const auto& [name, what] : tasks)
    all.push_back({fmt::format("{} running {}", what.first, name), what.second});
  for (const auto& actor : snapshot.actors) {
    const auto& spec = actor.spec();
    if (actor.state() != proto::ACTOR_ALIVE || spec.creation().group_id() != group_id) continue;
    all.push_back({fmt::format("actor {}{} (pid {})", spec.class_name(),
                               spec.name().empty() ? "" : " '" + spec.name() + "'", actor.pid()),
                   ResourceSet::from_proto(spec.creation().resources())});
  }
  return all;
}

}  // namespace

ResourceSet resources_from_json(const api_json::Json& amounts) {
  std::map<std::string, double> map;
  if (amounts.is_object()) {
    for (const auto& [name, value] : amounts.items()) {
      if (value.is_number()) map[name] = value.get<double>();
    }
  }
  auto set = ResourceSet::from_map(map);
  return set ? *set : ResourceSet();
}

std::vector<Holder> holders_of(const WaitingSnapshot& snapshot) {
  std::vector<Holder> all = running_in(snapshot, "");
  for (const auto& job : snapshot.jobs) {
    if (job.status() == "RUNNING")
      all.push_back({fmt::format("job {} (pid {})", job.submission_id(), job.pid()),
                     ResourceSet::from_proto(job.entrypoint_resources())});
  }
  for (const auto& group : snapshot.groups) {
    ResourceSet held;
    const state::BundlePlaces places = state::places_of(group);
    for (const auto& [node, indexes] : places.by_node) {
      for (int index : indexes)
        held.add(ResourceSet::from_proto(group.spec().bundles(index).resources()));
    }
    if (group.state() != proto::GROUP_REMOVED && !held.empty())
      all.push_back({state::group_title(group), std::move(held)});
  }
  return all;
}

std::vector<Holder> holders_in_group(const WaitingSnapshot& snapshot, const std::string& group_id) {
  return running_in(snapshot, group_id);
}

std::vector<std::string> largest_holders(std::vector<Holder> holders,
                                         const std::vector<std::string>& scarce) {
  auto held = [&](const Holder& holder) {
    double sum = 0;
    for (const std::string& name : scarce) sum += holder.holds.get(name);
    return sum;
  };
  std::stable_sort(holders.begin(), holders.end(),
                   [&](const Holder& a, const Holder& b) { return held(a) > held(b); });
  std::vector<std::string> lines;
  for (const Holder& holder : holders) {
    if (held(holder) <= 0 || lines.size() == kMostHolders) break;
    lines.push_back(fmt::format("{}: {}", holder.name, holder.holds.to_string()));
  }
  return lines;
}

}  // namespace rt::cli
