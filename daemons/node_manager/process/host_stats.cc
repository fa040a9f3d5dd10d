#include "daemons/node_manager/process/host_stats.h"

#include <fmt/core.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>

#include "common/base/clock.h"

namespace rt::node {
namespace {

constexpr int64_t kKiB = 1024;
constexpr size_t kMaxCommandBytes = 500;

std::string read_text(const std::string& path, size_t most = 1 << 20) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

double ticks() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

// The CPU lines of /proc/stat, and when the machine started.
void fill_cpu(proto::HostStats* out) {
  std::istringstream lines(read_text("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "cpu") {
      double total = 0, idle = 0, value = 0;
      for (int i = 0; i < 8 && words >> value; ++i) {
        total += value;
        if (i == 3 || i == 4) idle += value;      // idle, and waiting for disks
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
  std::set<std::string> cores;
  std::string package;
  std::istringstream info(read_text("/proc/cpuinfo"));
  for (std::string line; std::getline(info, line);) {
    std::string value = line.substr(std::min(line.size(), line.find(':') + 1));
    if (line.starts_with("physical id")) package = value;
    if (line.starts_with("core id")) cores.insert(package + "/" + value);
  }
  out->set_physical_cpus(cores.empty() ? out->logical_cpus() : static_cast<int>(cores.size()));
}

void fill_memory(proto::HostStats* out) {
  std::istringstream lines(read_text("/proc/meminfo"));
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
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return;
  proto::Disk* disk = out->add_disks();
  disk->set_mount(mount);
  int64_t block = static_cast<int64_t>(status.f_frsize);
  disk->set_total(static_cast<int64_t>(status.f_blocks) * block);
  disk->set_free(static_cast<int64_t>(status.f_bavail) * block);
  disk->set_used(static_cast<int64_t>(status.f_blocks - status.f_bfree) * block);
}

void fill_network(proto::HostStats* out) {
  std::istringstream lines(read_text("/proc/net/dev"));
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).find_first_not_of(' ') == std::string::npos || line.substr(0, colon).ends_with(" lo") || line.starts_with("lo")) continue;
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
  const std::string directory = fmt::format("/proc/{}/", pid);
  std::string stat = read_text(directory + "stat");
  size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return;
  std::istringstream words(stat.substr(name_end + 2));
  std::vector<double> fields(20);
  std::string state;
  words >> state;
  for (double& field : fields) words >> field;
  if (!words) return;
  proto::ProcessUsage* usage = out->add_processes();
  usage->set_pid(pid);
  usage->set_cpu_seconds((fields[10] + fields[11]) / ticks());        // utime, stime
  usage->set_threads(static_cast<int>(fields[16]));
  usage->set_create_time_ms(static_cast<int64_t>((static_cast<double>(boot_time_s) + fields[18] / ticks()) * 1000));
  int64_t total = 0, resident = 0, shared = 0;
  std::istringstream(read_text(directory + "statm")) >> total >> resident >> shared;
  usage->set_rss(resident * ::getpagesize());
  usage->set_shared(shared * ::getpagesize());
  std::string command = read_text(directory + "cmdline", kMaxCommandBytes);
  for (char& c : command) c = c == '\0' ? ' ' : c;
  usage->set_cmdline(command.substr(0, command.find_last_not_of(' ') + 1));
}

}  // namespace

proto::HostStats host_stats(const std::vector<int>& processes, const std::string& directory) {
  proto::HostStats out;
  fill_cpu(&out);
  fill_memory(&out);
  fill_disk("/", directory, &out);
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    out.set_shm_total(static_cast<int64_t>(shm.f_blocks * shm.f_frsize));
    out.set_shm_used(static_cast<int64_t>((shm.f_blocks - shm.f_bfree) * shm.f_frsize));
  }
  double load[3] = {};
  if (::getloadavg(load, 3) == 3) out.mutable_load()->Add(load, load + 3);
  fill_network(&out);
  for (int pid : processes) fill_process(pid, out.boot_time_s(), &out);
  out.set_wall_time_us(wall_now_us());
  return out;
}

}  // namespace rt::node
