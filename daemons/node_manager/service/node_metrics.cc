#include "daemons/node_manager/service/node_metrics.h"

#include <algorithm>

#include "common/resources/resource_set.h"
#include "daemons/node_manager/core/node_core.h"
#include "observability/metrics/prometheus.h"

namespace rt::node {
namespace {

using metrics::Labels;

constexpr double kMegabyte = 1e6;

// Writes samples of this node. SessionName, Version and the node's address are the first labels.
class Writer {
 public:
  // `address` is the name of the label with the node's address, which differs between groups.
  Writer(metrics::Exposition& out, const NodeScrape& scrape, std::string_view address)
      : out_(out),
        common_{{"SessionName", scrape.session_name},
                {"Version", scrape.version},
                {address, scrape.node_ip}} {}

  void gauge(std::string_view name, std::string_view help, double value,
             const Labels& labels = {}) const {
    out_.gauge(name, help, value, all(labels));
  }
  void gauge(std::string_view name, std::string_view help, int64_t value,
             const Labels& labels = {}) const {
    gauge(name, help, static_cast<double>(value), labels);
  }
  void counter(std::string_view name, std::string_view help, int64_t value,
               const Labels& labels = {}) const {
    out_.counter(name, help, static_cast<double>(value), all(labels));
  }
  void histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                 std::span<const int64_t> counts, double sum, const Labels& labels = {}) const {
    out_.histogram(name, help, bounds, counts, sum, metrics::Exposition::text_of(all(labels)));
  }

 private:
  Labels all(const Labels& labels) const {
    Labels together = common_;
    together.insert(together.end(), labels.begin(), labels.end());
    return together;
  }

  metrics::Exposition& out_;
  Labels common_;
};

void add_host(const Writer& out, const NodeScrape& scrape) {
  const proto::HostStats& now = scrape.now;
  HostRates rates = host_rates(scrape.before, now);
  out.gauge("ray_node_cpu_utilization", "CPU use of the machine since the last scrape, percent",
            rates.cpu_percent);
  out.gauge("ray_node_cpu_count", "logical CPUs", int64_t{now.logical_cpus()});
  out.gauge("ray_node_mem_total", "memory of the machine, bytes", now.memory_total());
  out.gauge("ray_node_mem_available", "memory that programs can still have, bytes",
            now.memory_available());
  out.gauge("ray_node_mem_used", "memory that is not available, bytes",
            now.memory_total() - now.memory_available());
  out.gauge("ray_node_shm_total", "shared-memory file system, bytes", now.shm_total());
  out.gauge("ray_node_shm_used", "shared-memory file system in use, bytes", now.shm_used());
  for (const proto::Disk& disk : now.disks()) {
    Labels mount{{"Mount", disk.mount()}};
    int64_t usable = disk.used() + disk.free();
    out.gauge("ray_node_disk_usage", "disk of the session directory in use, bytes", disk.used(),
              mount);
    out.gauge("ray_node_disk_free", "disk of the session directory free, bytes", disk.free(),
              mount);
    out.gauge(
        "ray_node_disk_utilization_percentage", "disk of the session directory in use, percent",
        usable > 0 ? 100.0 * static_cast<double>(disk.used()) / static_cast<double>(usable) : 0,
        mount);
  }
  out.gauge("ray_node_network_received", "bytes received since boot, without loopback",
            now.network_received());
  out.gauge("ray_node_network_sent", "bytes sent since boot, without loopback", now.network_sent());
  out.gauge("ray_node_network_receive_speed", "bytes per second received since the last scrape",
            rates.received);
  out.gauge("ray_node_network_send_speed", "bytes per second sent since the last scrape",
            rates.sent);
  constexpr const char* kLoads[] = {"ray_node_load_1m", "ray_node_load_5m", "ray_node_load_15m"};
  for (int i = 0; i < std::min<int>(now.load_size(), std::size(kLoads)); ++i)
    out.gauge(kLoads[i], "load average of the machine", now.load(i));
}

// Returns the value of the label Component. The daemons are called raylet and plasma_store, as
// users of Ray know them; a worker is called by its process title, "ray::IDLE" or "ray::NAME".
std::string component_of(const NodeScrape& scrape, const proto::ProcessUsage& usage) {
  if (&usage == &scrape.now.processes(0)) return "raylet";
  if (scrape.store && usage.pid() == scrape.store->pid()) return "plasma_store";
  for (const proto::ProcessInfo& process : scrape.processes.processes()) {
    if (process.alive() && process.pid() == usage.pid() && process.is_driver()) return "driver";
  }
  if (usage.cmdline().starts_with("ray::"))
    return usage.cmdline().substr(0, usage.cmdline().find_first_of(" ("));
  return "worker";
}

void add_processes(const Writer& out, const NodeScrape& scrape) {
  std::map<int, double> cpu_before;
  for (const auto& usage : scrape.before.processes()) cpu_before[usage.pid()] = usage.cpu_seconds();
  double seconds =
      static_cast<double>(scrape.now.wall_time_us() - scrape.before.wall_time_us()) / 1e6;
  for (const proto::ProcessUsage& usage : scrape.now.processes()) {
    Labels labels{{"Component", component_of(scrape, usage)}, {"pid", std::to_string(usage.pid())}};
    auto before = cpu_before.find(usage.pid());
    // In the first reading of a process the rate is unknown, and reported as 0. A reused process
    // id may have a smaller time than before, hence the max().
    double cpu = before != cpu_before.end() && seconds > 0
                     ? std::max(0.0, usage.cpu_seconds() - before->second) / seconds * 100
                     : 0;
    out.gauge("ray_component_cpu_percentage",
              "CPU use of the process since the last scrape, percent of one CPU", cpu, labels);
    out.gauge("ray_component_rss_bytes", "resident memory, bytes", usage.rss(), labels);
    out.gauge("ray_component_rss_mb", "resident memory, MB",
              static_cast<double>(usage.rss()) / kMegabyte, labels);
    out.gauge("ray_component_shared_bytes", "resident memory that others may share, bytes",
              usage.shared(), labels);
    auto detail = scrape.details.find(usage.pid());
    if (detail == scrape.details.end()) continue;
    out.gauge("ray_component_uss_bytes", "memory that is this process's alone, bytes",
              detail->second.unique_bytes, labels);
    out.gauge("ray_component_uss_mb", "memory that is this process's alone, MB",
              static_cast<double>(detail->second.unique_bytes) / kMegabyte, labels);
    out.gauge("ray_component_num_fds", "open descriptors", int64_t{detail->second.open_files},
              labels);
  }
}

void add_resources(const Writer& out, const NodeScrape& scrape) {
  ResourceSet total = ResourceSet::from_proto(scrape.node.total()),
              free = ResourceSet::from_proto(scrape.node.available());
  for (const auto& [name, units] : total.all()) {
    double available = free.get(name), all = static_cast<double>(units) / ResourceSet::kUnit;
    out.gauge("ray_resources", "logical resources of the node", available,
              {{"Name", name}, {"State", "AVAILABLE"}});
    out.gauge("ray_resources", "logical resources of the node", std::max(0.0, all - available),
              {{"Name", name}, {"State", "USED"}});
  }
}

void add_store(const Writer& out, const NodeScrape& scrape) {
  out.gauge("ray_object_store_hangs",
            "1 while the object store does not answer (health-check and status say more), else 0",
            int64_t{scrape.node.store_hangs()});
  if (!scrape.store) return;
  const proto::StoreStats& store = *scrape.store;
  out.gauge("ray_object_store_memory", "bytes of objects by where they are", store.used(),
            {{"Location", "MMAP_SHM"}, {"ObjectState", "SEALED"}});
  out.gauge("ray_object_store_used_memory", "bytes of objects in shared memory", store.used());
  out.gauge("ray_object_store_available_memory", "bytes of shared memory for more objects",
            std::max<int64_t>(0, store.capacity() - store.used()));
  out.gauge("ray_object_store_fallback_memory",
            "bytes of objects in files: there are none in this release", int64_t{0});
  out.gauge("ray_object_store_num_local_objects", "objects in shared memory", store.num_objects());
  out.gauge("ray_object_store_pinned_memory", "bytes of objects that somebody reads",
            store.pinned());
  out.gauge("ray_object_store_allocated_memory",
            "bytes of shared memory given out, objects and extents", store.allocated());
}

void add_scheduler(const Writer& out, const NodeScrape& scrape) {
  const proto::NodeFigures& node = scrape.node;
  const proto::NodeCounters& counters = node.counters();
  out.gauge("ray_scheduler_tasks",
            "tasks at this node's scheduler: that wait for a lease, and workers that run them",
            node.waiting_tasks(), {{"State", "Queued"}});
  out.gauge("ray_scheduler_tasks", "", int64_t{node.leased_workers()}, {{"State", "Executing"}});
  out.gauge("ray_scheduler_unscheduleable_tasks", "tasks that no node could run",
            node.infeasible_tasks(), {{"Reason", "Infeasible"}});
  out.counter("ray_scheduler_leases_granted_total", "leases given to owners of tasks",
              counters.leases_granted());
  out.counter("ray_scheduler_failed_worker_startup_total",
              "worker processes that could not be started", counters.worker_starts_failed());
  out.histogram(
      "ray_scheduler_placement_time_ms", "how long demand waited for the lease it got",
      kLeaseWaitBoundsMs,
      std::span(counters.lease_wait().data(), static_cast<size_t>(counters.lease_wait_size())),
      counters.lease_wait_ms());
  out.counter("ray_internal_num_processes_started_total", "worker processes started",
              counters.workers_started());
  out.counter("ray_node_manager_unexpected_worker_failure_total",
              "workers that ended by themselves with an error or by a signal",
              counters.workers_failed());
  if (counters.out_of_memory_kills() > 0) {
    out.counter("ray_memory_manager_worker_eviction_total",
                "workers that were ended to save memory", counters.out_of_memory_kills(),
                {{"Type", "MemoryManager.TotalEviction.Total"}, {"Name", ""}});
  }
  constexpr const char* kWorkers = "processes of this node by what they do";
  out.gauge("ray_workers", kWorkers, int64_t{node.starting_workers()}, {{"State", "STARTING"}});
  out.gauge("ray_workers", kWorkers, int64_t{node.idle_workers()}, {{"State", "IDLE"}});
  out.gauge("ray_workers", kWorkers, int64_t{node.leased_workers()}, {{"State", "LEASED"}});
  out.gauge("ray_workers", kWorkers, int64_t{node.actors()}, {{"State", "ACTOR"}});
  out.gauge("ray_workers", kWorkers, int64_t{node.drivers()}, {{"State", "DRIVER"}});
}

}  // namespace

std::string node_metrics_text(const NodeScrape& scrape) {
  metrics::Exposition out;
  Writer host(out, scrape, "ip"), node(out, scrape, "NodeAddress");
  add_host(host, scrape);
  add_processes(host, scrape);
  add_resources(node, scrape);
  add_store(node, scrape);
  add_scheduler(node, scrape);
  node.gauge("ray_rpc_connections", "open connections of the daemon",
             int64_t{scrape.node.connections()}, {{"Component", "raylet"}});
  node.gauge("ray_rpc_queued_bytes", "bytes that wait in them to be sent",
             scrape.node.queued_bytes(), {{"Component", "raylet"}});
  metrics::add_user_metrics({scrape.session_name, scrape.version, scrape.node_ip, scrape.programs},
                            &out);
  return out.text();
}

}  // namespace rt::node
