// The life of a ray-cpp-worker: it registers at the node-manager and runs tasks until the
// node-manager tells it to exit or is gone.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "cluster_runtime.h"
#include "common/base/log.h"
#include "executor.h"
#include "runtime.h"
#include "worker_output.h"

namespace ray::internal {
namespace {

int refuse(const std::string& message) {
  std::fprintf(stderr,
               "ray-cpp-worker: %s\nIt is started by ray-node-manager: ray-cpp-worker --worker-id "
               "HEX --node-manager-socket PATH --session-dir DIR "
               "--node-id HEX\n",
               message.c_str());
  return 2;
}

}  // namespace

RAY_API int WorkerMain(int argc, char** argv);

int WorkerMain(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (!flag.starts_with("--")) return refuse("unexpected argument " + flag);
    if (flag == "--help") return refuse("runs C++ remote functions."), 0;
    size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      flags[flag.substr(2, equals - 2)] = flag.substr(equals + 1);
    } else if (i + 1 < argc) {
      flags[flag.substr(2)] = argv[++i];
    } else {
      return refuse(flag + " has no value");
    }
  }
  rt::worker::Options options;
  options.is_driver = false;
  options.language = rt::proto::LANGUAGE_CPP;
  options.node_manager_socket = flags["node-manager-socket"];
  options.worker_id = rt::WorkerId::from_hex(flags["worker-id"]);
  // Its env_vars are already in this process's environment, which child processes inherit.
  options.runtime_env = flags["runtime-env"];
  if (options.node_manager_socket.empty() || options.worker_id.is_nil())
    return refuse("--worker-id and --node-manager-socket are needed");
  auto settings = rt::load_settings("", {});
  if (!settings) return refuse(settings.error().message);
  options.settings = *settings;
  if (!flags["session-dir"].empty()) {
    const char* level = std::getenv("RAY_BACKEND_LOG_LEVEL");
    rt::LogOptions log;
    log.component = "worker";
    log.file = fmt::format("{}/logs/cpp-core-worker-{}_{}.log", flags["session-dir"],
                           options.worker_id.hex(), getpid());
    log.level = rt::parse_log_level(level ? level : "", rt::LogLevel::kInfo);
    rt::init_log(log);
  }
  mark_output();

  auto worker = rt::worker::Worker::start(std::move(options));
  if (!worker) {
    std::fprintf(stderr, "ray-cpp-worker: %s\n", worker.error().message.c_str());
    return 1;
  }
  auto runtime = std::make_unique<ClusterRuntime>(std::move(*worker), ClusterRuntime::Options{});
  ClusterRuntime& cluster = *runtime;
  set_runtime(std::move(runtime));
  int code;
  {
    CppExecutor executor(cluster);
    code = cluster.worker().run(executor);
    std::fflush(nullptr);
    if (!executor.stop()) {  // User code is running, and may never return.
      rt::flush_log();
      _exit(code);
    }
  }
  clear_runtime();
  rt::flush_log();
  return code;
}

}  // namespace ray::internal
