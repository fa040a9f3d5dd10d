// `rayctl microbenchmark`: replaces this process by the Python benchmark ray._private.ray_perf.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.h"
#include "common/base/environment.h"

namespace rt::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kModule[] = "ray._private.ray_perf";
constexpr char kDefaultPython[] = "/usr/bin/python3";

// The directory with the `ray` package, looked for relative to this program: in a build tree, an
// installation, or a wheel. Empty if it is in none of them; then Python's own path decides.
std::string package_directory() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& candidate :
       {here / "../python", here / "../lib/ray-runtime/python", here / "../.."}) {
    if (fs::exists(candidate / "ray/_private/ray_perf.py", error))
      return candidate.lexically_normal().string();
  }
  return "";
}

// Replaces this process by the benchmark; returns only if that fails.
Error run_benchmark(Words words) {
  std::string python = environment("RAY_PYTHON");
  if (python.empty()) python = kDefaultPython;
  if (std::string directory = package_directory(); !directory.empty()) {
    std::string path = environment("PYTHONPATH");
    setenv("PYTHONPATH", (path.empty() ? directory : directory + ":" + path).c_str(), 1);
  }
  words.insert(words.begin(), {python, "-P", "-m", kModule});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return errno_error(fmt::format("cannot run {} (Debian: apt-get install python3; RAY_PYTHON names "
                                 "another interpreter)",
                                 python),
                     errno);
}

}  // namespace

int run_microbenchmark(const Words& words) {
  CommandLine line("microbenchmark",
                   "Measures tasks, actor calls, gets and puts a second, by the lines of the "
                   "standard benchmark, on a cluster of its own that ends afterwards.");
  line.option(
          "only", "TEXT",
          "lines whose names contain this; also TESTS_TO_RUN and TESTS_TO_SKIP in the environment")
      .option("rounds", "N", "of each line (default 4)")
      .option("seconds", "N", "of each round (default 2)")
      .option("out", "FILE", "also as JSON: {name: [mean, standard deviation]}");
  if (auto code = line.parse(words)) return *code;
  Words given;
  for (const char* name : {"rounds", "seconds"}) {
    auto number = line.whole(name, 1, 3600);
    if (!number) return usage_error("microbenchmark", number.error().message);
    if (*number) given.insert(given.end(), {std::string("--") + name, std::to_string(**number)});
  }
  for (const char* name : {"only", "out"}) {
    if (line.has(name)) given.push_back(fmt::format("--{}={}", name, line.get(name)));
  }
  // "local" makes the benchmark start a cluster of its own. The cluster that runs on this machine
  // or that RAY_ADDRESS names should be neither measured nor loaded.
  setenv("RAY_ADDRESS", "local", 1);
  return failure(run_benchmark(std::move(given)));
}

}  // namespace rt::cli
