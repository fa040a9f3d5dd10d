#include "cli/debug_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/style.h"
#include "common/base/ids.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"

namespace rt::cli {
namespace {

constexpr size_t kMostHolders = 5;

struct Holder {
  std::string name;
  ResourceSet holds;
};

// The supply of one resource on living nodes that do not drain: `most` is the largest amount that
// one node offers, `free` the free amount of all nodes together.
struct Supply {
  double most = 0, free = 0;
};

Supply supply_of(const proto::ClusterStatusReply& status, const std::string& resource) {
  Supply supply;
  for (const auto& node : status.nodes()) {
    if (!node.alive() || node.draining()) continue;
    supply.most = std::max(supply.most, ResourceSet::from_proto(node.total()).get(resource));
    supply.free += ResourceSet::from_proto(node.available()).get(resource);
  }
  return supply;
}

ResourceSet from_json(const api_json::Json& amounts) {
  std::map<std::string, double> map;
  if (amounts.is_object()) {
    for (const auto& [name, value] : amounts.items()) {
      if (value.is_number()) map[name] = value.get<double>();
    }
  }
  auto set = ResourceSet::from_map(map);
  return set ? *set : ResourceSet();
}

// Everything that holds resources: running tasks, grouped by function, living actors, and the
// entrypoints of running jobs.
std::vector<Holder> holders_of(const WaitingSnapshot& snapshot) {
  std::vector<Holder> all;
  std::map<std::string, std::pair<int64_t, ResourceSet>> tasks;
  for (const auto& row : snapshot.tasks) {
    if (text_of(row, "state") != "RUNNING" || text_of(row, "type") == "ACTOR_TASK") continue;
    auto& [count, held] = tasks[text_of(row, "func_or_class_name")];
    ++count;
    held.add(from_json(row.value("required_resources", api_json::Json::object())));
  }
  for (const auto& [name, what] : tasks)
    all.push_back({fmt::format("{} running {}", what.first, name), what.second});
  for (const auto& actor : snapshot.actors) {
    if (actor.state() != proto::ACTOR_ALIVE) continue;
    const auto& spec = actor.spec();
    all.push_back({fmt::format("actor {}{} (pid {})", spec.class_name(),
                               spec.name().empty() ? "" : " '" + spec.name() + "'", actor.pid()),
                   ResourceSet::from_proto(spec.creation().resources())});
  }
  for (const auto& job : snapshot.jobs) {
    if (job.status() == "RUNNING")
      all.push_back({fmt::format("job {} (pid {})", job.submission_id(), job.pid()),
                     ResourceSet::from_proto(job.entrypoint_resources())});
  }
  return all;
}

bool any_node_has(const proto::ClusterStatusReply& status, const ResourceSet& wanted) {
  return std::any_of(status.nodes().begin(), status.nodes().end(), [&](const proto::Node& node) {
    return node.alive() && !node.draining() &&
           ResourceSet::from_proto(node.total()).contains(wanted);
  });
}

Explanation explain_resources(const WaitingSnapshot& snapshot, const std::vector<Holder>& holders,
                              const ResourceSet& wanted, int64_t count, const std::string& what) {
  Explanation one{count,
                  fmt::format("{} {}", what.empty() ? "task or actor" : what, wanted.to_string()),
                  "",
                  {}};
  bool possible = any_node_has(snapshot.status, wanted);
  std::string short_of;
  std::vector<std::string> scarce;
  for (const auto& [name, units] : wanted.all()) {
    double need = static_cast<double>(units) / ResourceSet::kUnit;
    Supply supply = supply_of(snapshot.status, name);
    if (!possible && supply.most < need)
      short_of += fmt::format("{}{} of {} (the largest node has {})", short_of.empty() ? "" : ", ",
                              amount(need), name, amount(supply.most));
    if (possible && supply.free < need) {
      short_of += fmt::format("{}{} of {} ({} free)", short_of.empty() ? "" : ", ", amount(need),
                              name, amount(supply.free));
      scarce.push_back(name);
    }
  }
  if (!possible) {
    one.why = short_of.empty() ? "no single node has all of it: it waits until one joins"
                               : fmt::format("no node has {}: it waits until one joins", short_of);
    return one;
  }
  if (short_of.empty()) {
    one.why =
        "enough is free in the cluster, but not on a single eligible node; or a worker is being "
        "started";
    return one;
  }
  one.why = "needs " + short_of;
  std::vector<Holder> by_amount = holders;
  auto held = [&](const Holder& holder) {
    double sum = 0;
    for (const std::string& name : scarce) sum += holder.holds.get(name);
    return sum;
  };
  std::stable_sort(by_amount.begin(), by_amount.end(),
                   [&](const Holder& a, const Holder& b) { return held(a) > held(b); });
  for (const Holder& holder : by_amount) {
    if (held(holder) <= 0 || one.holders.size() == kMostHolders) break;
    one.holders.push_back(fmt::format("{}: {}", holder.name, holder.holds.to_string()));
  }
  return one;
}

// Adds the tasks that wait for their arguments and have not asked for resources yet, by function.
void explain_arguments(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  std::map<std::string, int64_t> counts;
  for (const auto& row : snapshot.tasks) {
    if (text_of(row, "state") == "PENDING_ARGS_AVAIL") ++counts[text_of(row, "func_or_class_name")];
  }
  for (const auto& [name, count] : counts)
    all->push_back({count,
                    name,
                    "arguments are not ready: other tasks make them, or they are on their way",
                    {}});
}

// Adds the calls that their callers hold back although the actor runs, by method.
void explain_held_back(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  std::map<std::string, int64_t> counts;
  for (const auto& row : snapshot.tasks) {
    if (text_of(row, "state") == "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY" &&
        text_of(row, "worker_id").empty())
      ++counts[text_of(row, "func_or_class_name")];
  }
  for (const auto& [name, count] : counts)
    all->push_back(
        {count,
         name,
         "wait at their caller for earlier calls to the same actor: it sends at most "
         "actor_max_in_flight (4096 unless set otherwise) unanswered calls to each "
         "concurrency group, and calls whose arguments are not ready hold back later ones",
         {}});
}

}  // namespace

std::vector<Explanation> explain(const WaitingSnapshot& snapshot) {
  std::vector<Explanation> all;
  const std::vector<Holder> holders = holders_of(snapshot);
  for (const auto& demand : snapshot.status.demands())
    all.push_back(explain_resources(snapshot, holders, ResourceSet::from_proto(demand.resources()),
                                    demand.count(), demand.what()));
  for (const auto& actor : snapshot.actors) {
    if (actor.state() != proto::ACTOR_RESTARTING) continue;
    std::string name = actor.spec().name().empty()
                           ? actor.spec().class_name()
                           : fmt::format("{} '{}'", actor.spec().class_name(), actor.spec().name());
    all.push_back({1,
                   "actor " + name,
                   fmt::format("it ended and is being started again, for the {}. time{}{}",
                               actor.num_restarts(), actor.death().message().empty() ? "" : ": ",
                               actor.death().message()),
                   {}});
  }
  explain_arguments(snapshot, &all);
  explain_held_back(snapshot, &all);
  return all;
}

std::string debug_text(const WaitingSnapshot& snapshot) {
  std::string text = fmt::format("======== What waits, and why: {} ========\n",
                                 local_time(snapshot.status.wall_time_ms()));
  auto all = explain(snapshot);
  for (const Explanation& one : all) {
    text += fmt::format("{} {}\n    {}\n", painted(fmt::format("{}x", one.count), Ink::kWarning),
                        printable(one.what), printable(one.why));
    for (const std::string& holder : one.holders) text += "    held by " + printable(holder) + "\n";
  }
  if (all.empty()) text += "Nothing waits.\n";
  for (const auto& point : snapshot.breakpoints) {
    text +=
        fmt::format("Breakpoint: pid {} waits at {}; connect with: nc {}\n", point.value("pid", 0),
                    printable(text_of(point, "place")), printable(text_of(point, "pdb_address")));
  }
  return text;
}

api_json::Json debug_json(const WaitingSnapshot& snapshot) {
  using api_json::Json;
  Json waiting = Json::array(), breakpoints = Json::array();
  for (const Explanation& one : explain(snapshot))
    waiting.push_back(
        {{"count", one.count}, {"what", one.what}, {"why", one.why}, {"held_by", one.holders}});
  for (const auto& point : snapshot.breakpoints) breakpoints.push_back(point);
  return {{"time_ms", snapshot.status.wall_time_ms()},
          {"waiting", waiting},
          {"breakpoints", breakpoints}};
}

}  // namespace rt::cli
