#include "cli/debug/debug_text.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cli/debug/debug_functions.h"
#include "cli/debug/debug_groups.h"
#include "cli/debug/debug_holders.h"
#include "cli/terminal/command_line.h"
#include "cli/terminal/output.h"
#include "cli/terminal/style.h"
#include "common/base/ids.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"

namespace rt::cli {
namespace {

// The supply of one resource on living nodes that do not drain: `most` is the largest amount that
// one node offers, `free` the free amount of all nodes together.
struct Supply {
  double most = 0, free = 0;
};

Supply supply_of(const proto::ClusterStatusReply& status, const std::string& resource) {
  Supply supply;
  for (const auto& node : status.nodes()) {
    if (!node.alive() || node.has_drain()) continue;
    supply.most = std::max(supply.most, ResourceSet::from_proto(node.total()).get(resource));
    supply.free += ResourceSet::from_proto(node.available()).get(resource);
  }
  return supply;
}

bool any_node_has(const proto::ClusterStatusReply& status, const ResourceSet& wanted) {
  return std::any_of(status.nodes().begin(), status.nodes().end(), [&](const proto::Node& node) {
    return node.alive() && !node.has_drain() &&
           ResourceSet::from_proto(node.total()).contains(wanted);
  });
}

// Returns why nothing at all can start: no node is alive. Empty if one is.
std::string why_nothing_starts(const WaitingSnapshot& snapshot) {
  const auto& nodes = snapshot.status.nodes();
  if (std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.alive(); }))
    return "";
  return fmt::format("no node is alive: start one with `{} start --address={}`", program_name(),
                     snapshot.head_address);
}

Explanation explain_demand(const WaitingSnapshot& snapshot, const std::vector<Holder>& holders,
                           const WaitingFunctions& functions, const proto::Demand& demand) {
  const ResourceSet wanted = ResourceSet::from_proto(demand.resources());
  const std::string where = demand.where().empty() ? "" : ", only on " + demand.where();
  const std::string what =
      fmt::format("{}{} {}", demand.what().empty() ? "task or actor" : functions.of(demand), where,
                  wanted.to_string());
  if (!demand.group_id().empty()) return explain_in_group(snapshot, demand, what);
  Explanation one{demand.count(), what, "", {}};
  if (one.why = why_nothing_starts(snapshot); !one.why.empty()) return one;
  if (!demand.waits_for().empty()) {
    one.why = "waits for " + demand.waits_for();
    return one;
  }
  bool possible = any_node_has(snapshot.status, wanted);
  if (possible && !where.empty()) {
    one.why = demand.infeasible()
                  ? "no node of that kind has that much, or none is alive: it waits until one joins"
                  : "other work uses what the nodes of that kind have";
    return one;
  }
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
    one.why = "enough is free in the cluster, but not on a single eligible node";
    return one;
  }
  one.why = "needs " + short_of;
  one.holders = largest_holders(holders, scarce);
  return one;
}

// Returns why the task of this row waits; empty if it does not, or if a demand for resources says
// why.
std::string why_task_waits(const api_json::Json& row) {
  const std::string state = text_of(row, "state");
  // The process that has the task may have sent its reason, which says more than the state.
  if (std::string known = text_of(row, "waits_for"); !known.empty()) return "waits for " + known;
  if (state == "PENDING_ARGS_AVAIL")
    return "arguments are not ready: other tasks make them, or they are on their way";
  if (state == "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY")
    return "its actor runs earlier calls first: as many at a time as max_concurrency or the "
           "concurrency group allows";
  if (state == "PENDING_OBJ_STORE_MEM_AVAIL")
    return "waits in its worker until the object store of its node has room for all of its "
           "arguments; `rayctl memory` shows what holds the room";
  if (state == "PENDING_ARGS_FETCH")
    return "waits in its worker for its arguments, which are on their way to its node";
  if (state == "SUBMITTED_TO_WORKER" && text_of(row, "type") == "ACTOR_TASK")
    return fmt::format(
        "was sent to the process of actor {}, which has not confirmed it: "
        "the process hangs or was stopped, or the call has just been made",
        text_of(row, "actor_id"));
  if (state == "SUBMITTED_TO_WORKER")
    return "was sent ahead (pipeline_max_tasks) to a worker that runs another task; it is taken "
           "back if that task runs for long";
  if (state == "PENDING_NODE_ASSIGNMENT" && text_of(row, "type") == "ACTOR_TASK")
    return "its actor is not alive yet";
  return "";
}

// Adds the tasks and calls that wait, but not for resources, by reason and function.
void explain_tasks(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  // The placement groups whose demands say more than the tasks' owners know.
  std::set<std::string> explained;
  for (const auto& demand : snapshot.status.demands()) {
    if (!demand.group_id().empty()) explained.insert(to_hex(demand.group_id()));
  }
  for (const auto& row : snapshot.tasks) {
    if (text_of(row, "state") == "PENDING_NODE_ASSIGNMENT" &&
        explained.contains(text_of(row, "placement_group_id")))
      continue;
    if (std::string why = why_task_waits(row); !why.empty())
      ++counts[{std::move(why), text_of(row, "func_or_class_name")}];
  }
  for (const auto& [key, count] : counts) all->push_back({count, key.second, key.first, {}});
}

// Adds what waits for room in object stores, with those who hold the room.
void explain_stores(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  for (const auto& node : snapshot.status.store_waits()) {
    std::vector<std::string> holders;
    for (const auto& store : snapshot.stores) {
      if (text_of(store, "node_id") != to_hex(node.node_id())) continue;
      for (const auto& holder : store.value("holders", api_json::Json::array())) {
        if (holders.size() == kMostHolders) break;
        const auto& pid = holder["pid"];
        holders.push_back(fmt::format("{}: {} in {} objects",
                                      process_name(WorkerId::from_hex(text_of(holder, "worker_id")),
                                                   pid.is_number() ? pid.get<int>() : 0),
                                      binary_bytes(holder["bytes"].get<double>()),
                                      holder["objects"].get<int64_t>()));
      }
    }
    for (const auto& waiter : node.waiters()) {
      const char* what = "put or result of a task";
      std::string fate = fmt::format("it fails after {} ms without room", node.fails_after_ms());
      if (waiter.kind() == proto::StoreWaiter::ARGUMENTS) what = "task with its arguments";
      if (waiter.kind() == proto::StoreWaiter::COPIES) what = "object of another node";
      if (waiter.kind() != proto::StoreWaiter::VALUES)
        fate = fmt::format("it fails if for {} ms no running task is left that will give room back",
                           node.fails_after_ms());
      all->push_back(
          {waiter.count(),
           fmt::format("{}, of {}", what,
                       process_name(WorkerId::from_binary(waiter.worker_id()), waiter.pid())),
           fmt::format(
               "has waited since {} for room in the object store of node {}: {} wanted, {} of "
               "{} used{}; {} (create_wait_ms)",
               local_time(waiter.since_ms()), node.node_ip(),
               binary_bytes(static_cast<double>(waiter.bytes())),
               binary_bytes(static_cast<double>(node.used())),
               binary_bytes(static_cast<double>(node.capacity())),
               node.no_pages().empty() ? "" : ", and " + node.no_pages(), fate),
           holders});
    }
  }
}

// Adds the actors whose first constructor runs, by class. Actors that wait for resources are in the
// demands, and explain() itself adds those that are started again.
void explain_constructors(const WaitingSnapshot& snapshot, std::vector<Explanation>* all) {
  std::map<std::string, std::string> pending;  // Maps the id of an actor in hex to its class.
  for (const auto& actor : snapshot.actors) {
    if (actor.state() == proto::ACTOR_PENDING)
      pending.emplace(to_hex(actor.spec().actor_id()), actor.spec().class_name());
  }
  std::map<std::string, int64_t> running;
  for (const auto& row : snapshot.tasks) {
    if (text_of(row, "type") != "ACTOR_CREATION_TASK" || text_of(row, "state") != "RUNNING")
      continue;
    const auto actor = pending.find(text_of(row, "actor_id"));
    if (actor != pending.end()) ++running[actor->second];
  }
  for (const auto& [class_name, count] : running)
    all->push_back({count, "actor of " + class_name, "its constructor has not returned yet", {}});
}

}  // namespace

std::vector<Explanation> explain(const WaitingSnapshot& snapshot) {
  std::vector<Explanation> all;
  for (const auto& node : snapshot.status.nodes()) {
    if (node.alive() && !node.problem().empty())
      all.push_back(
          {1, fmt::format("node {} ({})", to_hex(node.node_id()), node.ip()), node.problem(), {}});
  }
  const std::vector<Holder> holders = holders_of(snapshot);
  const WaitingFunctions functions(snapshot);
  for (const auto& demand : snapshot.status.demands()) {
    all.push_back(explain_demand(snapshot, holders, functions, demand));
    all.back().is_least = demand.count() > 1;
  }
  if (snapshot.status.demands_left_out() > 0)
    all.push_back({snapshot.status.demands_left_out(),
                   "task or actor with other resources",
                   "is not listed: each node reports at most demands_per_node different demands",
                   {}});
  for (const auto& actor : snapshot.actors) {
    if (actor.state() != proto::ACTOR_RESTARTING) continue;
    std::string name = actor.spec().name().empty()
                           ? actor.spec().class_name()
                           : fmt::format("{} '{}'", actor.spec().class_name(), actor.spec().name());
    all.push_back(
        {1,
         "actor " + name,
         fmt::format("it ended and is being started again (restart {}){}{}", actor.num_restarts(),
                     actor.death().message().empty() ? "" : ": ", actor.death().message()),
         {}});
  }
  explain_groups(snapshot, &all);
  explain_constructors(snapshot, &all);
  explain_tasks(snapshot, &all);
  explain_stores(snapshot, &all);
  return all;
}

std::string debug_text(const WaitingSnapshot& snapshot) {
  std::string text = fmt::format("======== What waits, and why: {} ========\n",
                                 local_time(snapshot.status.wall_time_ms()));
  auto all = explain(snapshot);
  for (const Explanation& one : all) {
    const std::string count = fmt::format("{}{}x", one.is_least ? "at least " : "", one.count);
    text += fmt::format("{} {}\n    {}\n", painted(count, Ink::kWarning), printable(one.what),
                        printable(one.why));
    for (const std::string& holder : one.holders) text += "    held by " + printable(holder) + "\n";
  }
  if (all.empty()) text += "Nothing waits.\n";
  text += group_table(snapshot);
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
    waiting.push_back({{"count", one.count},
                       {"count_is_least", one.is_least},
                       {"what", one.what},
                       {"why", one.why},
                       {"held_by", one.holders}});
  for (const auto& point : snapshot.breakpoints) breakpoints.push_back(point);
  return {{"time_ms", snapshot.status.wall_time_ms()},
          {"waiting", waiting},
          {"placement_groups", group_table_json(snapshot)},
          {"breakpoints", breakpoints}};
}

}  // namespace rt::cli
