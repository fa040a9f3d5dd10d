#include "cli/debug/debug_functions.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/debug/debug_holders.h"
#include "cli/terminal/output.h"
#include "common/base/ids.h"

namespace rt::cli {
namespace {

// Returns whether the demand names the function. Demands name functions with their modules, and
// tasks by their own names if they have some.
bool has_name(const proto::Demand& demand, const std::string& function, const std::string& name) {
  const std::string& what = demand.what();
  return !what.empty() && (what == function || what == name || what.ends_with("." + function));
}

}  // namespace

WaitingFunctions::WaitingFunctions(const WaitingSnapshot& snapshot) {
  for (const auto& actor : snapshot.actors) {
    const auto& group = actor.spec().creation().group_id();
    if (actor.state() != proto::ACTOR_ALIVE && !group.empty())
      waiting_actors_.emplace(to_hex(group), actor.spec().class_name());
  }
  for (const auto& demand : snapshot.status.demands()) demands_[key_of(demand)].push_back(&demand);
  for (const auto& row : snapshot.tasks) {
    const std::string type = text_of(row, "type"), group = text_of(row, "placement_group_id");
    if (text_of(row, "state") != "PENDING_NODE_ASSIGNMENT" || type == "ACTOR_TASK") continue;
    const bool constructs = type == "ACTOR_CREATION_TASK";
    std::string function = text_of(row, "func_or_class_name");
    // Demands name the class.
    constexpr std::string_view kConstructor = ".__init__";
    if (constructs && function.ends_with(kConstructor))
      function.resize(function.size() - kConstructor.size());
    const Key key{group,
                  resources_from_json(row.value("required_resources", api_json::Json::object())),
                  constructs && !group.empty()};
    ++tasks_[key][{std::move(function), text_of(row, "name")}];
  }
}

WaitingFunctions::Key WaitingFunctions::key_of(const proto::Demand& demand) const {
  std::string group = to_hex(demand.group_id());
  const bool of_actors = waiting_actors_.contains({group, demand.what()});
  return {std::move(group), ResourceSet::from_proto(demand.resources()), of_actors};
}

std::string WaitingFunctions::of(const proto::Demand& demand) const {
  const Key key = key_of(demand);
  const auto tasks = tasks_.find(key);
  const auto alike = demands_.find(key);
  if (tasks == tasks_.end() || alike == demands_.end()) return demand.what();
  const auto& [ignored, demands] = *alike;
  std::map<std::string, int64_t> counts;
  for (const auto& [function, count] : tasks->second) {
    auto is_named_by = [&](const proto::Demand* one) {
      return has_name(*one, function.first, function.second);
    };
    if (is_named_by(&demand) || std::none_of(demands.begin(), demands.end(), is_named_by))
      counts[function.first] += count;
  }
  if (counts.size() < 2) return demand.what();
  const bool is_alone = demands.size() == 1;
  std::string all;
  for (const auto& [function, count] : counts) {
    if (!all.empty()) all += is_alone ? ", " : " or ";
    all += is_alone ? fmt::format("{} ({})", function, count) : function;
  }
  return all;
}

}  // namespace rt::cli
