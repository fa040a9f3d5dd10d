// Detection of CPUs and memory under the limits of control groups, against faked /proc and /sys
// trees.
#include "launch/node/detect.h"

#include "tests/unit/launch/fixture.h"

namespace rt::launch {
namespace {

class DetectTest : public LaunchTest {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::string full = tree() + path;
    std::filesystem::create_directories(full.substr(0, full.rfind('/')));
    std::ofstream(full) << text;
  }
  std::string tree() const { return home() + "/tree"; }
};

TEST_F(DetectTest, TheRealMachineHasSomething) {
  EXPECT_GE(detect_cpus(), 1);
  EXPECT_GT(detect_memory(), 0);
}

TEST_F(DetectTest, Version2LimitsOfAnyAncestorCount) {
  write("/proc/self/cgroup", "0::/pod/app\n");
  write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000000 kB\n");
  EXPECT_EQ(detect_cpus(tree(), 8), 8);
  EXPECT_EQ(detect_memory(tree()), 8'000'000LL * 1024);
  write("/sys/fs/cgroup/pod/app/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/pod/cpu.max", "350000 100000\n");
  write("/sys/fs/cgroup/pod/app/memory.max", "max\n");
  write("/sys/fs/cgroup/pod/memory.max", "1000000\n");
  write("/sys/fs/cgroup/pod/memory.current", "700000\n");
  write("/sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 100000\n");
  EXPECT_EQ(detect_cpus(tree(), 8), 3);
  EXPECT_EQ(detect_memory(tree()), 400'000);
}

TEST_F(DetectTest, Version1Limits) {
  write("/proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n");
  write("/proc/meminfo", "MemAvailable:    8000000 kB\n");
  // A container sees its own group at the mount point, not below /docker/abc.
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "500000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(detect_cpus(tree(), 8), 1) << "half a CPU is still one";
  EXPECT_EQ(detect_memory(tree()), 1'500'000);
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(detect_cpus(tree(), 8), 8);
}

}  // namespace
}  // namespace rt::launch
