#include "daemons/node_manager/process/host_stats.h"

#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "common/base/clock.h"
#include "common/base/proc.h"
#include "observability/metrics/process.h"

namespace rt::node {
namespace {

constexpr int64_t kKiB = 1024;
constexpr size_t kMaxCommandBytes = 500;

double ticks() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

// Reads the CPU times and the boot time from /proc/stat.
void fill_cpu(proto::HostStats* out) {
  std::istringstream lines(read_proc("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "cpu") {
      double total = 0, idle = 0, value = 0;
      for (int i = 0; i < 8 && words >> value; ++i) {
        total += value;
        if (i == 3 || i == 4) idle += value;  // the columns idle and iowait
      }
      out->set_cpu_total_seconds(total / ticks());
      out->set_cpu_busy_seconds((total - idle) / ticks());
    } else if (name == "btime") {
      int64_t seconds = 0;
      words >> seconds;
      out->set_boot_time_s(seconds);
    }
  }
  out->set_logical_cpus(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

void fill_cores(proto::HostStats* out) {
  std::set<std::string> cores;
  std::string package;
  std::istringstream info(read_proc("/proc/cpuinfo"));
  for (std::string line; std::getline(info, line);) {
    std::string value = line.substr(std::min(line.size(), line.find(':') + 1));
    if (line.starts_with("physical id")) package = value;
    if (line.starts_with("core id")) cores.insert(package + "/" + value);
  }
  out->set_physical_cpus(cores.empty() ? out->logical_cpus() : static_cast<int>(cores.size()));
}

void fill_memory(proto::HostStats* out) {
  std::istringstream lines(read_proc("/proc/meminfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") out->set_memory_total(kib * kKiB);
    if (name == "MemAvailable:") out->set_memory_available(kib * kKiB);
  }
}

void fill_disk(const std::string& mount, const std::string& path, proto::HostStats* out) {
  struct statvfs status{};
  if (::statvfs(path.c_str(), &status) != 0) return;
  proto::Disk* disk = out->add_disks();
  disk->set_mount(mount);
  int64_t block = static_cast<int64_t>(status.f_frsize);
  disk->set_total(static_cast<int64_t>(status.f_blocks) * block);
  disk->set_free(static_cast<int64_t>(status.f_bavail) * block);
  disk->set_used(static_cast<int64_t>(status.f_blocks - status.f_bfree) * block);
}

void fill_network(proto::HostStats* out) {
  std::istringstream lines(read_proc("/proc/net/dev"));
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(':');
    if (colon == std::string::npos ||
        line.substr(0, colon).find_first_not_of(' ') == std::string::npos ||
        line.substr(0, colon).ends_with(" lo") || line.starts_with("lo"))
      continue;
    std::istringstream words(line.substr(colon + 1));
    int64_t received = 0, skipped = 0, sent = 0;
    words >> received;
    for (int i = 0; i < 7; ++i) words >> skipped;
    words >> sent;
    out->set_network_received(out->network_received() + received);
    out->set_network_sent(out->network_sent() + sent);
  }
}

void fill_process(int pid, int64_t boot_time_s, proto::HostStats* out) {
  auto figures = metrics::process_figures(pid);
  if (!figures) return;
  proto::ProcessUsage* usage = out->add_processes();
  usage->set_pid(pid);
  usage->set_cpu_seconds(figures->cpu_seconds);
  usage->set_threads(figures->threads);
  usage->set_create_time_ms(
      static_cast<int64_t>((static_cast<double>(boot_time_s) + figures->started_s) * 1000));
  usage->set_rss(figures->rss);
  usage->set_shared(figures->shared);
  std::string command = read_proc(fmt::format("/proc/{}/cmdline", pid), kMaxCommandBytes);
  for (char& c : command) c = c == '\0' ? ' ' : c;
  usage->set_cmdline(command.substr(0, command.find_last_not_of(' ') + 1));
}

}  // namespace

proto::HostStats host_load(const std::string& directory) {
  proto::HostStats out;
  fill_cpu(&out);
  fill_memory(&out);
  fill_disk("/", directory, &out);
  fill_network(&out);
  out.set_wall_time_us(wall_now_us());
  return out;
}

HostRates host_rates(const proto::HostStats& before, const proto::HostStats& now) {
  HostRates rates;
  double cpu = now.cpu_total_seconds() - before.cpu_total_seconds();
  if (cpu > 0)
    rates.cpu_percent =
        std::clamp(100 * (now.cpu_busy_seconds() - before.cpu_busy_seconds()) / cpu, 0.0, 100.0);
  rates.seconds = static_cast<double>(now.wall_time_us() - before.wall_time_us()) / 1e6;
  // The sums shrink when a network interface disappears.
  if (rates.seconds > 0)
    rates.received = static_cast<double>(
                         std::max<int64_t>(0, now.network_received() - before.network_received())) /
                     rates.seconds;
  if (rates.seconds > 0)
    rates.sent =
        static_cast<double>(std::max<int64_t>(0, now.network_sent() - before.network_sent())) /
        rates.seconds;
  return rates;
}

proto::HostStats host_stats(const std::vector<int>& processes, const std::string& directory) {
  proto::HostStats out = host_load(directory);
  fill_cores(&out);
  struct statvfs shm{};
  if (::statvfs("/dev/shm", &shm) == 0) {
    out.set_shm_total(static_cast<int64_t>(shm.f_blocks * shm.f_frsize));
    out.set_shm_used(static_cast<int64_t>((shm.f_blocks - shm.f_bfree) * shm.f_frsize));
  }
  double load[3] = {};
  if (::getloadavg(load, 3) == 3) out.mutable_load()->Add(load, load + 3);
  for (int pid : processes) fill_process(pid, out.boot_time_s(), &out);
  return out;
}

}  // namespace rt::node
