#include "cli/commands/top_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/terminal/output.h"
#include "cli/terminal/style.h"
#include "common/base/ids.h"
#include "common/base/readable.h"
#include "observability/state/status_text.h"
#include "observability/state/usage.h"

namespace rt::cli {
namespace {

struct WorkerLook {
  const NodeSnapshot* node;
  const proto::ProcessUsage* usage;
  const proto::ProcessInfo* info;
  // The share of one CPU since the previous page, or since its start on the first page.
  double cpu;
};

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double host_cpu(const NodeSnapshot& snapshot) {
  return ratio(snapshot.now.cpu_busy_seconds() - snapshot.before.cpu_busy_seconds(),
               snapshot.now.cpu_total_seconds() - snapshot.before.cpu_total_seconds());
}

double process_cpu(const NodeSnapshot& snapshot, const proto::ProcessUsage& usage) {
  for (const auto& earlier : snapshot.before.processes()) {
    if (earlier.pid() == usage.pid() && earlier.create_time_ms() == usage.create_time_ms())
      return std::max(0.0, ratio(usage.cpu_seconds() - earlier.cpu_seconds(),
                                 static_cast<double>(snapshot.now.wall_time_us() -
                                                     snapshot.before.wall_time_us()) /
                                     1e6));
  }
  return ratio(
      usage.cpu_seconds(),
      static_cast<double>(snapshot.now.wall_time_us() / 1000 - usage.create_time_ms()) / 1e3);
}

std::string percent(double part) { return fmt::format("{:.0f}%", 100 * part); }

std::string node_name(const proto::Node& node) {
  return node.name().empty() ? node.ip() : node.name();
}

// Returns "USED/TOTAL" of a resource of `node`.
std::string in_use(const proto::Node& node, const char* resource) {
  const state::Usage usage = state::usage_of({&node})[resource];
  return fmt::format("{}/{}", amount(usage.used), amount(usage.total));
}

std::string node_table(const ClusterSnapshot& snapshot, TopOrder order, size_t most) {
  std::vector<const NodeSnapshot*> nodes;
  for (const auto& node : snapshot.nodes) nodes.push_back(&node);
  std::stable_sort(nodes.begin(), nodes.end(), [&](const NodeSnapshot* a, const NodeSnapshot* b) {
    if (order == TopOrder::kCpu) return host_cpu(*a) > host_cpu(*b);
    return a->now.memory_total() - a->now.memory_available() >
           b->now.memory_total() - b->now.memory_available();
  });
  std::vector<Words> rows = {{"NODE", "ADDRESS", "HOST CPU", "HOST MEMORY", "LOAD", "SHM",
                              "CPUS IN USE", "GPUS IN USE", "PROCESSES"}};
  for (size_t i = 0; i < std::min(most, nodes.size()); ++i) {
    const NodeSnapshot& one = *nodes[i];
    const std::string address = fmt::format("{}:{}", one.node.ip(), one.node.port());
    if (!one.answered) {
      rows.push_back({node_name(one.node), address, painted("no answer", Ink::kWarning)});
      continue;
    }
    int64_t used = one.now.memory_total() - one.now.memory_available();
    auto alive = std::count_if(one.processes.processes().begin(), one.processes.processes().end(),
                               [](const proto::ProcessInfo& process) { return process.alive(); });
    rows.push_back({node_name(one.node), address, percent(host_cpu(one)),
                    fmt::format("{}/{}", binary_bytes(static_cast<double>(used)),
                                binary_bytes(static_cast<double>(one.now.memory_total()))),
                    one.now.load_size() > 0 ? fmt::format("{:.2f}", one.now.load(0)) : "",
                    binary_bytes(static_cast<double>(one.now.shm_used())), in_use(one.node, "CPU"),
                    in_use(one.node, "GPU"), std::to_string(alive)});
  }
  std::string text = table(rows);
  return nodes.size() > most ? text + fmt::format("... {} more nodes\n", nodes.size() - most)
                             : text;
}

std::string what_it_is(const ClusterSnapshot& snapshot, const proto::ProcessInfo& info) {
  if (info.is_driver()) return "driver of job " + to_hex(info.job_id());
  auto actor = snapshot.actors.find(WorkerId::from_binary(info.worker_id()));
  if (actor != snapshot.actors.end()) return "actor " + actor->second;
  return info.job_id().empty() ? "worker" : "worker of job " + to_hex(info.job_id());
}

std::string worker_table(const ClusterSnapshot& snapshot, TopOrder order, size_t most) {
  std::vector<WorkerLook> workers;
  for (const auto& node : snapshot.nodes) {
    std::map<int, const proto::ProcessInfo*> known;
    for (const auto& info : node.processes.processes()) {
      if (info.alive()) known[info.pid()] = &info;
    }
    for (const auto& usage : node.now.processes()) {
      if (auto it = known.find(usage.pid()); it != known.end())
        workers.push_back({&node, &usage, it->second, process_cpu(node, usage)});
    }
  }
  std::stable_sort(workers.begin(), workers.end(), [&](const WorkerLook& a, const WorkerLook& b) {
    return order == TopOrder::kCpu ? a.cpu > b.cpu : a.usage->rss() > b.usage->rss();
  });
  std::vector<Words> rows = {{"PID", "NODE", "CPU", "MEMORY", "WHAT"}};
  for (size_t i = 0; i < std::min(most, workers.size()); ++i) {
    const WorkerLook& one = workers[i];
    rows.push_back({std::to_string(one.usage->pid()), node_name(one.node->node), percent(one.cpu),
                    binary_bytes(static_cast<double>(one.usage->rss())),
                    what_it_is(snapshot, *one.info)});
  }
  std::string text = table(rows);
  return workers.size() > most
             ? text + fmt::format("... {} more processes\n", workers.size() - most)
             : text;
}

}  // namespace

std::string top_text(const ClusterSnapshot& snapshot, TopOrder order, size_t nodes,
                     size_t workers) {
  std::string text =
      fmt::format("{}  {}  {} node{}  session {}\n", painted("rayctl top", Ink::kTitle),
                  local_time(snapshot.status.wall_time_ms()), snapshot.nodes.size(),
                  snapshot.nodes.size() == 1 ? "" : "s", snapshot.status.session_name());
  std::string tasks;
  for (const auto& [state, count] : snapshot.tasks)
    tasks += fmt::format("{}{} {}", tasks.empty() ? "" : ", ", count, state);
  text += fmt::format("Resources in use: {}\nTasks: {}\n", state::usage_summary(snapshot.status),
                      tasks.empty() ? "none yet" : tasks);
  int64_t waiting = 0;
  for (const auto& demand : snapshot.status.demands()) waiting += demand.count();
  waiting += snapshot.status.pending_groups_size();
  if (waiting > 0)
    text += fmt::format("Waiting for resources: {}+ (`rayctl debug` says for what)\n", waiting);
  return text + "\n" + node_table(snapshot, order, nodes) + "\n" +
         worker_table(snapshot, order, workers);
}

}  // namespace rt::cli
