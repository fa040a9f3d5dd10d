#include "launch/node/detect.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "common/resources/resource_set.h"
#include "launch/node/internal.h"

namespace rt::launch {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
constexpr double kMaxCpus = 1e6;  // No machine has more: a larger number is a typing error.
constexpr int64_t kMaxMemory = int64_t{1} << 46;  // 64 TiB, for the same reason.
constexpr double kObjectStoreShare = 0.3;
constexpr double kSharedMemoryShare = 0.95;  // The rest of the file system is left to others.

int affinity_count() {
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(bits);
    size_t bytes = CPU_ALLOC_SIZE(bits);
    int got = sched_getaffinity(0, bytes, set);
    int count = got == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (got == 0) return std::max(count, 1);
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::optional<int64_t> read_number(const std::string& path) {
  auto text = read_file(path, 4096);
  if (!text) return std::nullopt;
  std::string_view digits = trimmed(*text);
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) return kNoLimit;
  // The limit may be a word, for example "max".
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The directories of this process's control group and its ancestors, any of which may set a limit,
// for one controller (empty: version 2).
std::vector<std::string> group_directories(const std::string& root, const std::string& controller) {
  auto groups = read_file(root + "/proc/self/cgroup");
  if (!groups) return {};
  std::string mount = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::istringstream lines(*groups);
  std::vector<std::string> directories;
  for (std::string line; std::getline(lines, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string names = "," + line.substr(first + 1, second - first - 1) + ",",
                path = line.substr(second + 1);
    bool matches = controller.empty() ? names == ",,"
                                      : names.find("," + controller + ",") != std::string::npos;
    if (!matches) continue;
    while (path.size() > 1 && path.front() == '/') {
      directories.push_back(mount + path);
      path.resize(path.rfind('/'));
    }
  }
  // In a container the group's own path is often not visible, but the mount shows the container's
  // group.
  directories.push_back(mount);
  return directories;
}

double cpu_quota(const std::string& root) {
  double quota = std::numeric_limits<double>::infinity();
  for (const auto& directory : group_directories(root, "")) {
    auto text = read_file(directory + "/cpu.max", 256);
    if (!text) continue;
    double max = 0, period = 0;
    std::istringstream in(*text);
    if (in >> max >> period && max > 0 && period > 0) quota = std::min(quota, max / period);
  }
  for (const auto& directory : group_directories(root, "cpu")) {
    auto max = read_number(directory + "/cpu.cfs_quota_us"),
         period = read_number(directory + "/cpu.cfs_period_us");
    if (max && period && *max > 0 && *period > 0)
      quota = std::min(quota, static_cast<double>(*max) / static_cast<double>(*period));
  }
  return quota;
}

// The value in the line "key value" (or "key: value kB") of a statistics file; 0 when there is no
// such line.
int64_t statistic(const std::string& path, std::string_view key) {
  auto text = read_file(path);
  if (!text) return 0;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    int64_t value = 0;
    rest >> value;
    return value;
  }
  return 0;
}

int64_t left_in_group(const std::string& directory, const char* limit_file, const char* usage_file,
                      const char* cache_key) {
  auto limit = read_number(directory + limit_file), usage = read_number(directory + usage_file);
  if (!limit || *limit == kNoLimit) return kNoLimit;
  // The kernel gives page cache back under pressure, so it does not count as used.
  int64_t used =
      std::max<int64_t>(0, usage.value_or(0) - statistic(directory + "/memory.stat", cache_key));
  return std::max<int64_t>(0, *limit - used);
}

Error out_of_range(std::string_view option, std::string value, std::string_view accepted) {
  return make_error(Code::kInvalid, fmt::format("{} is {}: it takes {}", option, value, accepted));
}

Status check_count(std::string_view option, const std::optional<double>& count) {
  if (count && (!std::isfinite(*count) || *count < 0 || *count > kMaxCpus))
    return out_of_range(option, fmt::format("{}", *count), "a number from 0 to 1000000");
  return {};
}

Status check_memory(std::string_view option, const std::optional<int64_t>& bytes, int64_t min) {
  if (bytes && (*bytes < min || *bytes > kMaxMemory))
    return out_of_range(option, fmt::format("{}", *bytes),
                        fmt::format("a number of bytes from {} to {}", min, kMaxMemory));
  return {};
}

// Refuses a store larger than the machine's memory, unless its directory was chosen: then the store
// itself checks what that directory can hold.
Status check_fits_memory(const std::optional<int64_t>& bytes, const std::string& directory) {
  int64_t total = statistic("/proc/meminfo", "MemTotal:") * 1024;
  if (!bytes || !directory.empty() || total == 0 || *bytes <= total) return {};
  return make_error(Code::kInvalid,
                    fmt::format("--object-store-memory is {}: this machine has {} bytes of memory",
                                *bytes, total));
}

Status check_custom(const std::map<std::string, double>& resources) {
  static const std::map<std::string, std::string> own_flags = {
      {"CPU", "--num-cpus"},
      {"GPU", "--num-gpus"},
      {"memory", "--memory"},
      {"object_store_memory", "--object-store-memory"}};
  for (const auto& [name, amount] : resources) {
    auto own = own_flags.find(name);
    if (own != own_flags.end())
      return make_error(Code::kInvalid,
                        fmt::format("--resources names '{}': use {} for it", name, own->second));
    if (name.starts_with("node:"))
      return make_error(
          Code::kInvalid,
          fmt::format("--resources names '{}': names that begin with 'node:' are the cluster's own",
                      name));
  }
  if (auto set = ResourceSet::from_map(resources); !set)
    return make_error(Code::kInvalid, "--resources: " + set.error().message);
  return {};
}

}  // namespace

int detect_cpus(const std::string& root, int affinity) {
  int count = affinity > 0 ? affinity : affinity_count();
  double quota = cpu_quota(root);
  if (quota < count) count = static_cast<int>(quota);
  return std::max(count, 1);
}

int64_t detect_memory(const std::string& root) {
  int64_t left = statistic(root + "/proc/meminfo", "MemAvailable:") * 1024;
  if (left == 0) left = kNoLimit;
  for (const auto& directory : group_directories(root, "")) {
    left = std::min(left,
                    left_in_group(directory, "/memory.max", "/memory.current", "inactive_file "));
  }
  for (const auto& directory : group_directories(root, "memory")) {
    left = std::min(left, left_in_group(directory, "/memory.limit_in_bytes",
                                        "/memory.usage_in_bytes", "total_inactive_file "));
  }
  return left == kNoLimit ? 0 : left;
}

int64_t detect_object_store_memory(const std::string& directory, int64_t min) {
  struct statvfs info;
  if (statvfs(directory.empty() ? "/dev/shm" : directory.c_str(), &info) != 0) return 0;
  auto room =
      static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize) * kSharedMemoryShare;
  auto bytes = static_cast<int64_t>(
      std::min(static_cast<double>(detect_memory()) * kObjectStoreShare, room));
  return bytes < min ? 0 : bytes;
}

std::map<std::string, double> detect_totals(const std::string& node_ip,
                                            int64_t object_store_memory) {
  std::map<std::string, double> totals = {{"CPU", detect_cpus()}, {"node:" + node_ip, 1}};
  if (int64_t left = detect_memory() - object_store_memory; left > 0)
    totals["memory"] = static_cast<double>(left);
  if (object_store_memory > 0)
    totals["object_store_memory"] = static_cast<double>(object_store_memory);
  return totals;
}

Result<NodeResources> node_resources(const NodeOptions& options, const std::string& node_ip,
                                     int64_t min_store, int64_t configured_store) {
  RT_TRY(check_count("--num-cpus", options.resources.num_cpus));
  RT_TRY(check_count("--num-gpus", options.resources.num_gpus));
  RT_TRY(check_memory("--memory", options.resources.memory, 1));
  RT_TRY(check_memory("--object-store-memory", options.resources.object_store_memory, min_store));
  RT_TRY(check_fits_memory(options.resources.object_store_memory, options.plasma_directory));
  RT_TRY(check_custom(options.resources.custom));
  NodeResources node;
  node.object_store_memory = options.resources.object_store_memory.value_or(configured_store);
  if (node.object_store_memory == 0)
    node.object_store_memory = detect_object_store_memory(options.plasma_directory, min_store);
  node.totals = detect_totals(node_ip, node.object_store_memory);
  node.totals.insert(options.resources.custom.begin(), options.resources.custom.end());
  if (options.resources.num_cpus) node.totals["CPU"] = *options.resources.num_cpus;
  if (options.resources.num_gpus) node.totals["GPU"] = *options.resources.num_gpus;
  if (options.resources.memory)
    node.totals["memory"] = static_cast<double>(*options.resources.memory);
  std::erase_if(node.totals, [](const auto& entry) { return entry.second == 0; });
  // Every node-manager checks this, too: sums of the amounts must be exact.
  if (auto set = ResourceSet::from_map(node.totals); !set) return set.error();
  return node;
}

}  // namespace rt::launch
