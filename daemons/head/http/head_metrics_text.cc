#include "daemons/head/http/head_metrics_text.h"

#include <map>
#include <set>

#include "common/base/ids.h"
#include "observability/metrics/exposition.h"
#include "observability/state/groups.h"

namespace rt::head {
namespace {

using metrics::Exposition;

// A program that numbers its tasks' names would make the scrape grow without bound: all further
// names share one sample for each state.
constexpr size_t kMostTaskKinds = 10'000;
constexpr double kMegabyte = 1e6;

template <class T>
double real(T value) {
  return static_cast<double>(value);
}

void add_tasks(const ClusterScrape& scrape, Exposition* out) {
  std::map<std::string, int64_t> others;
  size_t kinds = 0;
  auto add = [out](const std::string& name, const std::string& state, const std::string& job,
                   bool is_retry, int64_t count) {
    out->gauge("ray_tasks",
               "tasks by state: those that have not ended, and the history of the others",
               real(count),
               {{"State", state},
                {"Name", name},
                {"Source", "owner"},
                {"IsRetry", is_retry ? "1" : "0"},
                {"JobId", job}});
  };
  for (const auto& tasks : scrape.census.tasks) {
    if (++kinds > kMostTaskKinds) {
      others[tasks.state] += tasks.count;
    } else {
      add(tasks.name, tasks.state, tasks.job_hex, tasks.is_retry, tasks.count);
    }
  }
  for (const auto& [state, count] : others) add("(others)", state, "", false, count);
}

std::string actor_state(const proto::ActorInfo& actor, const std::set<ActorId>& busy) {
  switch (actor.state()) {
    case proto::ACTOR_ALIVE:
      return busy.contains(ActorId::from_binary(actor.spec().actor_id())) ? "ALIVE_RUNNING_TASKS"
                                                                          : "ALIVE_IDLE";
    case proto::ACTOR_RESTARTING: return "RESTARTING";
    case proto::ACTOR_DEAD: return "DEAD";
    case proto::ACTOR_DEPENDENCIES_UNREADY: return "DEPENDENCIES_UNREADY";
    default: return "PENDING_CREATION";
  }
}

void add_actors(const ClusterScrape& scrape, Exposition* out) {
  std::map<std::array<std::string, 3>, int64_t> actors;
  std::map<std::string, int64_t> states;
  for (const auto& actor : scrape.census.actors) {
    std::string state = actor_state(actor, scrape.census.busy_actors);
    ++actors[{state, actor.spec().class_name(), to_hex(actor.spec().job_id())}];
    ++states[state.starts_with("ALIVE") ? "ALIVE" : state];
  }
  for (const auto& [key, count] : actors) {
    out->gauge("ray_actors", "actors by state, the dead ones that are remembered among them",
               real(count),
               {{"State", key[0]}, {"Name", key[1]}, {"Source", "gcs"}, {"JobId", key[2]}});
  }
  for (const auto& [state, count] : states)
    out->gauge("ray_gcs_actors_count", "actors by state", real(count), {{"State", state}});
}

// Every state has a sample, also when no group is in it, so that a graph has no gaps.
void add_groups(const ClusterScrape& scrape, Exposition* out) {
  std::map<std::string, int64_t> states;
  for (int state = proto::GroupState_MIN; state <= proto::GroupState_MAX; ++state)
    states[state::group_state_name(static_cast<proto::GroupState>(state))] = 0;
  std::map<std::string, int64_t> counts{{"Registered", 0}, {"Pending", 0}, {"Infeasible", 0}};
  for (const auto& group : scrape.groups.groups()) {
    ++states[state::group_state_name(group.state())];
    if (group.state() == proto::GROUP_REMOVED) continue;
    ++counts["Registered"];
    if (group.state() == proto::GROUP_PENDING || group.state() == proto::GROUP_RESCHEDULING)
      ++counts[group.infeasible() ? "Infeasible" : "Pending"];
  }
  for (const auto& [state, count] : states)
    out->gauge("ray_placement_groups",
               "placement groups by state, the removed ones that are remembered among them",
               real(count), {{"State", state}, {"Source", "gcs"}});
  for (const auto& [state, count] : counts)
    out->gauge(
        "ray_gcs_placement_group_count",
        "placement groups that are not removed (Registered), and those of them that wait for "
        "nodes (Pending) or for nodes that no cluster of this size has (Infeasible)",
        real(count), {{"State", state}});
}

void add_jobs(const ClusterScrape& scrape, Exposition* out) {
  int64_t running = 0;
  for (const auto& job : scrape.jobs.jobs()) {
    running += !job.finished();
    int64_t end_ms = job.finished() ? job.end_time_ms() : scrape.status.wall_time_ms();
    out->gauge("ray_job_duration_s", "how long the job has lasted, or did",
               real(std::max<int64_t>(0, end_ms - job.start_time_ms())) / 1000,
               {{"JobId", to_hex(job.job_id())}});
  }
  out->gauge("ray_running_jobs", "drivers that are connected", real(running));
  out->counter("ray_finished_jobs_total", "drivers that ended", real(scrape.head.jobs_finished()));
}

void add_nodes(const ClusterScrape& scrape, Exposition* out) {
  std::map<std::string, int64_t> alive{{"head", 0}, {"worker", 0}};
  for (const auto& node : scrape.nodes) {
    if (node.alive()) ++alive[node.is_head() ? "head" : "worker"];
  }
  for (const auto& [type, count] : alive)
    out->gauge("ray_cluster_active_nodes", "nodes of the cluster", real(count),
               {{"node_type", type}});
  std::map<std::string, int64_t> impaired{{"head", 0}, {"worker", 0}};
  for (const auto& node : scrape.nodes)
    impaired[node.is_head() ? "head" : "worker"] += !node.problem().empty();
  for (const auto& [type, count] : impaired)
    out->gauge("ray_cluster_impaired_nodes",
               "living nodes that do not work as they should (status and health-check say why)",
               real(count), {{"node_type", type}});
  if (scrape.head.nodes_died() > 0)
    out->gauge("ray_cluster_failed_nodes", "nodes that died without a farewell and are remembered",
               real(scrape.head.nodes_died()), {{"node_type", "worker"}});
  std::map<std::string, int64_t> waiting{{"feasible", 0}, {"infeasible", 0}};
  for (const auto& demand : scrape.status.demands())
    waiting[demand.infeasible() ? "infeasible" : "feasible"] += demand.count();
  for (const auto& [state, count] : waiting)
    out->gauge("ray_cluster_waiting",
               "tasks, actors and submitted jobs that wait for resources somewhere", real(count),
               {{"State", state}});
}

void add_head(const ClusterScrape& scrape, Exposition* out) {
  const proto::HeadStats& head = scrape.head;
  out->counter("ray_gcs_task_manager_task_events_reported_total",
               "events of tasks that came to the head", real(head.task_events_reported()));
  out->counter("ray_gcs_task_manager_task_events_dropped_total",
               "events of tasks that processes could not keep", real(head.task_events_dropped()));
  out->counter("ray_tasks_finished_total", "tasks that ended well since the head's start",
               real(head.tasks_finished()));
  out->counter("ray_tasks_failed_total",
               "tasks that failed since the head's start, each attempt apart",
               real(head.tasks_failed()));
  out->gauge("ray_metrics_history_samples", "samples in the head's own history of metrics",
             real(head.history_samples()));
  out->gauge("ray_head_storage_failing",
             "1 while writing the head's files fails (health-check and status say why), else 0",
             head.storage_failing() ? 1 : 0);
  out->counter("ray_head_storage_write_failures_total",
               "writes to the head's files that failed since its start",
               real(head.storage_write_failures()));
  out->gauge("ray_rpc_connections", "open connections of the daemon", real(head.connections()),
             {{"Component", "gcs"}});
  out->gauge("ray_rpc_queued_bytes", "bytes that wait in them to be sent",
             real(head.queued_bytes()), {{"Component", "gcs"}});
  const metrics::Labels process{{"Component", "gcs"},
                                {"pid", std::to_string(scrape.pid)},
                                {"ip", scrape.address.substr(0, scrape.address.rfind(':'))}};
  out->gauge("ray_component_cpu_percentage",
             "CPU use of the process since the last scrape, percent of one CPU", scrape.cpu_percent,
             process);
  out->gauge("ray_component_rss_bytes", "resident memory, bytes", real(scrape.rss), process);
  out->gauge("ray_component_rss_mb", "resident memory, MB", real(scrape.rss) / kMegabyte, process);
  out->gauge("ray_component_shared_bytes", "resident memory that others may share, bytes",
             real(scrape.shared), process);
  out->gauge("ray_component_uss_bytes", "memory that is this process's alone, bytes",
             real(scrape.unique), process);
  out->gauge("ray_component_uss_mb", "memory that is this process's alone, MB",
             real(scrape.unique) / kMegabyte, process);
  out->gauge("ray_component_num_fds", "open descriptors", real(scrape.open_files), process);
}

}  // namespace

std::string cluster_metrics_text(const ClusterScrape& scrape) {
  Exposition out(
      metrics::Labels{{"SessionName", scrape.session_name}, {"Version", scrape.version}});
  add_tasks(scrape, &out);
  add_actors(scrape, &out);
  add_groups(scrape, &out);
  add_jobs(scrape, &out);
  add_nodes(scrape, &out);
  add_head(scrape, &out);
  return out.text();
}

}  // namespace rt::head
