#include "daemons/head/http/node_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "observability/api_json/node_json.h"
#include "observability/state/rows.h"
#include "observability/state/usage.h"

namespace rt::head {
namespace {

double percent(double part, double whole) {
  return whole > 0 ? std::round(1000.0 * part / whole) / 10 : 0;
}

double seconds_between(const NodeReport& report) {
  return static_cast<double>(report.now.wall_time_us() - report.before.wall_time_us()) / 1e6;
}

double speed(double before, double now, double seconds) {
  return seconds > 0 ? std::max(0.0, (now - before) / seconds) : 0;
}

Json host_fields(const NodeReport& report) {
  const proto::HostStats& now = report.now;
  const proto::HostStats& before = report.before;
  int64_t used = now.memory_total() - now.memory_available();
  double share = percent(static_cast<double>(used), static_cast<double>(now.memory_total()));
  Json memory = {now.memory_total(), now.memory_available(), share, used};
  Json disks = Json::object();
  for (const auto& disk : now.disks()) {
    disks[disk.mount()] = {{"total", disk.total()},
                           {"used", disk.used()},
                           {"free", disk.free()},
                           {"percent", percent(static_cast<double>(disk.used()),
                                               static_cast<double>(disk.used() + disk.free()))}};
  }
  Json load = Json::array(), per_cpu = Json::array();
  for (double value : now.load()) {
    load.push_back(value);
    per_cpu.push_back(std::round(100 * value / std::max(1, now.logical_cpus())) / 100);
  }
  double seconds = seconds_between(report);
  return {{"now", static_cast<double>(now.wall_time_us()) / 1e6},
          {"cpu", percent(now.cpu_busy_seconds() - before.cpu_busy_seconds(),
                          now.cpu_total_seconds() - before.cpu_total_seconds())},
          {"cpus", {now.logical_cpus(), now.physical_cpus()}},
          {"mem", memory},
          {"host_mem", memory},
          {"cgroup_mem", nullptr},
          {"shm", now.shm_used()},
          {"boot_time", now.boot_time_s()},
          {"load_avg", {load, per_cpu}},
          {"disk", disks},
          {"disk_io", nullptr},
          {"disk_io_speed", nullptr},
          {"network", {now.network_sent(), now.network_received()}},
          {"network_speed",
           {speed(static_cast<double>(before.network_sent()),
                  static_cast<double>(now.network_sent()), seconds),
            speed(static_cast<double>(before.network_received()),
                  static_cast<double>(now.network_received()), seconds)}}};
}

const proto::ProcessUsage* usage_of(const proto::HostStats& stats, int pid) {
  auto found = std::find_if(stats.processes().begin(), stats.processes().end(),
                            [pid](const auto& usage) { return usage.pid() == pid; });
  return found == stats.processes().end() ? nullptr : &*found;
}

Json amount(const std::optional<int64_t>& bytes) { return bytes ? Json(*bytes) : Json(); }

}  // namespace

Json node_object(const NodeReport& report) {
  const proto::Node& node = report.node;
  Json out = report.answered ? host_fields(report) : Json::object();
  out["hostname"] = node.hostname();
  out["ip"] = node.ip();
  out["gpus"] = out["tpus"] = Json::array();
  out["agent"] = Json::object();
  out["gcs"] = Json::object();
  const proto::ProcessUsage* own = usage_of(report.now, node.pid());
  out["cmdline"] = own ? Json(own->cmdline()) : Json();
  int workers = 0;
  for (const auto& process : report.processes.processes())
    workers += process.alive() && !process.is_driver();
  Json labels = Json::object();
  for (const auto& [name, value] : node.labels()) labels[name] = value;
  out["raylet"] = {
      {"node_id", to_hex(node.node_id())},
      {"node_name", node.name().empty() ? node.ip() : node.name()},
      {"node_manager_address", node.ip()},
      {"node_manager_port", node.port()},
      {"object_manager_port", node.port()},
      {"state", node.alive() ? "ALIVE" : "DEAD"},
      {"state_message", state::node_message(node)},
      {"is_head_node", node.is_head()},
      {"resources_total", Json(api_json::amounts_json(node.total()))},
      {"labels", labels},
      {"num_workers", workers},
      {"pid", node.pid()},
      {"start_time", node.start_time_ms()},
      {"terminate_time", node.end_time_ms()},
      {"object_store_used_memory", amount(report.store_used)},
      {"object_store_available_memory",
       report.store_used ? Json(std::max<int64_t>(0, *report.store_capacity - *report.store_used))
                         : Json()},
      {"store_stats",
       {{"object_store_bytes_used", amount(report.store_used)},
        {"object_store_bytes_avail", amount(report.store_capacity)}}}};
  return out;
}

Json worker_objects(const NodeReport& report) {
  Json out = Json::array();
  double seconds = seconds_between(report);
  for (const auto& process : report.processes.processes()) {
    const proto::ProcessUsage* usage = usage_of(report.now, process.pid());
    if (!process.alive() || !usage) continue;
    const proto::ProcessUsage* before = usage_of(report.before, process.pid());
    double cpu = before ? 100 * speed(before->cpu_seconds(), usage->cpu_seconds(), seconds) : 0;
    out.push_back({{"pid", process.pid()},
                   {"cmdline", {usage->cmdline()}},
                   {"cpu_percent", std::round(10 * cpu) / 10},
                   {"cpu_times", {{"total", usage->cpu_seconds()}}},
                   {"memory_info", {{"rss", usage->rss()}, {"shared", usage->shared()}}},
                   {"create_time", static_cast<double>(usage->create_time_ms()) / 1000},
                   {"num_threads", usage->threads()},
                   {"job_id", to_hex(process.job_id())},
                   {"language", process.language() == proto::LANGUAGE_CPP ? "CPP" : "PYTHON"},
                   {"core_worker_stats",
                    Json::array({{{"worker_id", to_hex(process.worker_id())},
                                  {"worker_type", process.is_driver() ? "DRIVER" : "WORKER"},
                                  {"actor_id", to_hex(process.actor_id())}}})}});
  }
  return out;
}

Json process_stats(const NodeReport& report, int pid) {
  const proto::ProcessUsage* usage = usage_of(report.now, pid);
  if (!usage) return {};
  const proto::ProcessUsage* before = usage_of(report.before, pid);
  double cpu =
      before ? 100 * speed(before->cpu_seconds(), usage->cpu_seconds(), seconds_between(report))
             : 0;
  return {{"cpuPercent", std::round(10 * cpu) / 10},
          {"mem", nullptr},
          {"memoryInfo", {{"rss", usage->rss()}, {"shared", usage->shared()}}},
          {"createTime", static_cast<double>(usage->create_time_ms()) / 1000},
          {"numThreads", usage->threads()}};
}

Json actor_object(const proto::ActorInfo& actor) {
  Json row = state::actor_row(actor);
  const proto::WorkerAddress& address = actor.address();
  const proto::ActorSpec& spec = actor.spec();
  return {{"actor_id", row["actor_id"]},
          {"job_id", row["job_id"]},
          {"name", spec.name()},
          {"ray_namespace", spec.ray_namespace()},
          {"class_name", spec.class_name()},
          {"actor_class", spec.class_name()},
          {"repr_name", row["repr_name"]},
          {"state", row["state"]},
          {"pid", row["pid"]},
          {"address",
           {{"node_id", to_hex(address.node_id())},
            {"ip_address", address.ip()},
            {"port", address.port()},
            {"worker_id", to_hex(address.worker_id())}}},
          {"num_restarts", actor.num_restarts()},
          {"timestamp", std::max(actor.start_time_ms(), actor.end_time_ms())},
          {"start_time", actor.start_time_ms()},
          {"end_time", actor.end_time_ms()},
          {"required_resources", row["required_resources"]},
          {"label_selector", row["label_selector"]},
          {"placement_group_id", row["placement_group_id"]},
          {"exit_detail", actor.state() == proto::ACTOR_DEAD ? actor.death().message() : "-"},
          {"call_site", row["call_site"]},
          {"gpus", Json::array()},
          {"tpus", Json::array()},
          {"process_stats", nullptr},
          {"mem", nullptr}};
}

std::string resource_lines(const proto::Node& node) {
  std::string text;
  for (const auto& [name, usage] : state::usage_of({&node})) {
    if (name.starts_with("node:")) continue;
    text += fmt::format("{}{}/{} {}", text.empty() ? "" : "\n", usage.used, usage.total, name);
    if (usage.reserved > 0)
      text += fmt::format(" ({} used of {} reserved in placement groups)", usage.reserved_used,
                          usage.reserved);
  }
  return text;
}

}  // namespace rt::head
