#include "observability/state/status_text.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/readable.h"
#include "common/base/utf8.h"
#include "common/resources/resource_set.h"
#include "observability/state/demand_text.h"
#include "observability/state/groups.h"
#include "observability/state/usage.h"

namespace rt::state {
namespace {

constexpr int kMaxFailures = 20;

bool is_hidden(const std::string& name, bool verbose) {
  return name.starts_with("node:") || (name.starts_with("accelerator_type:") && !verbose);
}

// The usage of each resource that is shown, such as "1.0/4.0 CPU".
std::vector<std::string> usage_texts(const std::vector<const proto::Node*>& nodes, bool verbose) {
  std::vector<std::string> texts;
  for (const auto& [name, usage] : usage_of(nodes)) {
    if (!is_hidden(name, verbose)) texts.push_back(usage_text(name, usage));
  }
  return texts;
}

std::string usage_lines(const std::vector<const proto::Node*>& nodes, bool verbose,
                        std::string_view indent) {
  std::string lines;
  for (const std::string& text : usage_texts(nodes, verbose))
    lines += fmt::format("{}{}\n", indent, text);
  return lines;
}

bool is_idle(const proto::Node& node) {
  return !node.is_head() &&
         ResourceSet::from_proto(node.total()) == ResourceSet::from_proto(node.available());
}

std::string drain_text(const proto::Node& node) {
  if (!node.has_drain()) return "";
  const proto::NodeDrain& drain = node.drain();
  return fmt::format(" (draining: takes nothing new{}{})",
                     drain.deadline_ms() > 0
                         ? ", ends at " + local_time(drain.deadline_ms()) + " at the latest"
                         : "",
                     drain.message().empty() ? "" : "; " + printable(drain.message()));
}

std::string node_lines(const std::vector<const proto::Node*>& nodes, const char* none) {
  if (nodes.empty()) return fmt::format(" ({})\n", none);
  std::string lines;
  for (const auto* node : nodes) {
    lines += fmt::format(" 1 node_{}{}\n", to_hex(node->node_id()), drain_text(*node));
    if (!node->problem().empty())
      lines += fmt::format("   Warning: {}\n", printable(node->problem()));
  }
  return lines;
}

std::vector<const proto::Node*> alive_nodes(const proto::ClusterStatusReply& status) {
  std::vector<const proto::Node*> alive;
  for (const auto& node : status.nodes()) {
    if (node.alive()) alive.push_back(&node);
  }
  return alive;
}

// Returns "2 puts or results of tasks of the driver of job 01000000 (pid 7): 57.22MiB since
// 12:34:56".
std::string store_waiter_text(const proto::StoreWaiter& waiter) {
  const char* what = "puts or results of tasks";
  if (waiter.kind() == proto::StoreWaiter::ARGUMENTS) what = "tasks with their arguments";
  if (waiter.kind() == proto::StoreWaiter::COPIES) what = "objects of other nodes";
  return fmt::format("{} {} of {}: {} since {}", waiter.count(), what,
                     process_name(WorkerId::from_binary(waiter.worker_id()), waiter.pid()),
                     binary_bytes(static_cast<double>(waiter.bytes())),
                     local_time(waiter.since_ms()));
}

// Lines for everything that waits without a demand for resources; none if nothing does.
std::string wait_lines(const proto::ClusterStatusReply& status) {
  std::string lines;
  if (const int64_t count = status.waiting_for_arguments(); count > 0)
    lines += fmt::format(
        "Waiting for arguments that are not made yet:\n {} tasks, calls or actors\n", count);
  if (const int64_t count = status.waiting_for_actors(); count > 0)
    lines += fmt::format(
        "Waiting for actors that have actor_max_in_flight unanswered calls of one caller, or run "
        "as "
        "many calls at a time as max_concurrency or the group allows:\n {} calls\n",
        count);
  if (status.store_waits_size() > 0) lines += "Waiting for room in object stores:\n";
  for (const auto& node : status.store_waits()) {
    for (const auto& waiter : node.waiters())
      lines += fmt::format(" {}\n", store_waiter_text(waiter));
    lines += fmt::format(
        "  node {}: {} of {} used{}; puts and results fail after {} ms without room "
        "(create_wait_ms)\n",
        node.node_ip(), binary_bytes(static_cast<double>(node.used())),
        binary_bytes(static_cast<double>(node.capacity())),
        node.no_pages().empty() ? "" : ", and " + printable(node.no_pages()),
        node.fails_after_ms());
  }
  return lines;
}

std::string failure_lines(const proto::ClusterStatusReply& status) {
  std::string lines;
  for (int i = std::max(0, status.recent_failures_size() - kMaxFailures);
       i < status.recent_failures_size(); ++i)
    lines += " " + printable(status.recent_failures(i)) + "\n";
  return lines.empty() ? " (no failures)\n" : lines;
}

std::string per_node_lines(const std::vector<const proto::Node*>& nodes, bool verbose) {
  std::string lines;
  for (const auto* node : nodes) {
    lines += fmt::format("\nNode: {} ({})\n Id: {}\n Usage:\n",
                         node->name().empty() ? node->ip() : printable(node->name()), node->ip(),
                         to_hex(node->node_id()));
    lines += usage_lines({node}, verbose, "  ");
    lines += fmt::format(" Activity:\n  {}\n", is_idle(*node)    ? "(no activity)"
                                               : node->is_head() ? "head"
                                                                 : "Resources in use");
  }
  return lines;
}

api_json::Json store_waits_json(const proto::StoreWaits& node) {
  api_json::Json waiters = api_json::Json::array();
  for (const auto& waiter : node.waiters()) {
    waiters.push_back({{"kind", proto::StoreWaiter::Kind_Name(waiter.kind())},
                       {"worker_id", to_hex(waiter.worker_id())},
                       {"job_id", to_hex(waiter.job_id())},
                       {"pid", waiter.pid()},
                       {"count", waiter.count()},
                       {"bytes", waiter.bytes()},
                       {"since_ms", waiter.since_ms()}});
  }
  return api_json::object_of({{"node_id", to_hex(node.node_id())},
                              {"node_ip", node.node_ip()},
                              {"used", node.used()},
                              {"capacity", node.capacity()},
                              {"create_wait_ms", node.fails_after_ms()},
                              {"no_pages", node.no_pages()},
                              {"waiting", std::move(waiters)}});
}

// The bundles by size, so that a group of thousands of equal ones stays short.
api_json::Json pending_group_json(const proto::GroupInfo& group) {
  api_json::Json bundles = api_json::Json::array();
  for (const BundleShape& shape : bundle_shapes(group, true))
    bundles.push_back(
        {{"resources", api_json::amounts_json(shape.resources)}, {"count", shape.count}});
  return api_json::object_of({{"placement_group_id", to_hex(group.spec().group_id())},
                              {"name", group.spec().name()},
                              {"job_id", to_hex(group.spec().job_id())},
                              {"state", group_state_name(group.state())},
                              {"strategy", strategy_name(group.spec())},
                              {"bundles", std::move(bundles)},
                              {"infeasible", group.infeasible()},
                              {"attempts", group.attempts()},
                              {"why", group.why()}});
}

// Returns the amounts that placement groups reserve: {"CPU": {"reserved": 3.0, "used": 1.0}}.
api_json::Json reserved_json(const proto::ClusterStatusReply& status) {
  api_json::Json out = api_json::Json::object();
  for (const auto& [name, usage] : usage_of(alive_nodes(status))) {
    if (usage.reserved > 0)
      out[name] = {{"reserved", usage.reserved}, {"used", usage.reserved_used}};
  }
  return out;
}

}  // namespace

std::string status_text(const proto::ClusterStatusReply& status, bool verbose) {
  const std::string storage = status.storage_failure().empty()
                                  ? ""
                                  : fmt::format("The head's {}\n", status.storage_failure());
  if (status.nodes().empty()) return storage + "No cluster status. No node has reported yet.\n";
  std::vector<const proto::Node*> alive = alive_nodes(status), active, idle;
  for (const auto* node : alive) (is_idle(*node) ? idle : active).push_back(node);
  const std::string rule(63, '-');
  std::string text = fmt::format("======== Autoscaler status: {} ========\n{}Node status\n{}\n",
                                 local_time(status.wall_time_ms()), storage, rule);
  text += "Active:\n" + node_lines(active, "no active nodes");
  text += "Idle:\n" + node_lines(idle, "no idle nodes");
  text += "Pending:\n (no pending nodes)\n";
  text += "Recent failures:\n" + failure_lines(status);
  text +=
      fmt::format("\nResources\n{}\nTotal Usage:\n{}\n", rule, usage_lines(alive, verbose, " "));
  text += "From request_resources:\n (none)\nPending Demands:\n" + demand_lines(status) +
          wait_lines(status);
  if (verbose) text += per_node_lines(alive, verbose);
  return text;
}

std::string usage_summary(const proto::ClusterStatusReply& status) {
  const std::vector<std::string> texts = usage_texts(alive_nodes(status), false);
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

api_json::Json status_json(const proto::ClusterStatusReply& status) {
  using api_json::Json;
  Json demands = Json::array();
  for (const auto& demand : status.demands()) {
    demands.push_back(
        {{"resources", api_json::amounts_json(demand.resources())},
         {"count", demand.count()},
         {"infeasible", demand.infeasible()},
         {"what", demand.what()},
         {"waits_for", demand.waits_for()},
         {"where", demand.where()},
         {"placement_group_id", optional_hex(demand.group_id())},
         {"bundle_index", demand.group_id().empty() ? Json() : Json(demand.bundle_index())}});
  }
  Json groups = Json::array();
  for (const auto& group : status.pending_groups()) groups.push_back(pending_group_json(group));
  Json store_waits = Json::array();
  for (const auto& node : status.store_waits()) store_waits.push_back(store_waits_json(node));
  Json failures = Json::array();
  for (const auto& failure : status.recent_failures()) failures.push_back(failure);
  Json problems = Json::array();
  for (const auto& node : status.nodes()) {
    if (!node.problem().empty())
      problems.push_back({{"node_id", to_hex(node.node_id())}, {"problem", node.problem()}});
  }
  return api_json::object_of(
      {{"time_ms", status.wall_time_ms()},
       {"session_name", status.session_name()},
       {"nodes", api_json::nodes_json(status.nodes())},
       {"cluster_resources", api_json::resources_json(status.nodes(), api_json::Amount::kTotal)},
       {"available_resources",
        api_json::resources_json(status.nodes(), api_json::Amount::kAvailable)},
       {"reserved_resources", reserved_json(status)},
       {"pending_demands", std::move(demands)},
       {"pending_placement_groups", std::move(groups)},
       {"pending_demands_left_out", status.demands_left_out()},
       {"waiting_for_arguments", status.waiting_for_arguments()},
       {"waiting_for_actors", status.waiting_for_actors()},
       {"store_waits", std::move(store_waits)},
       {"recent_failures", std::move(failures)},
       {"node_problems", std::move(problems)},
       {"storage_failure",
        status.storage_failure().empty() ? Json() : Json(status.storage_failure())}});
}

}  // namespace rt::state
