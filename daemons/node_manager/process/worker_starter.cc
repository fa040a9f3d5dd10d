#include "daemons/node_manager/process/worker_starter.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/log.h"
#include "common/base/log_names.h"
#include "daemons/node_manager/process/env_vars.h"

namespace rt::node {
namespace {
constexpr size_t kMaxCanonical = 1000;

ForkServersOptions server_options(const WorkerStarterOptions& options) {
  ForkServersOptions servers;
  servers.python = options.python;
  servers.python_path = options.python_path;
  servers.session_dir = options.session_dir;
  servers.env = options.env;
  servers.end_children = options.end_children;
  servers.idle_us = options.idle_server_us;
  servers.crash_pause_us = options.crash_pause_us;
  return servers;
}
}  // namespace

WorkerStarter::WorkerStarter(net::Loop& loop, Reaper& reaper, WorkerStarterOptions options,
                             WorkerStarterEvents events)
    : loop_(loop),
      reaper_(reaper),
      options_(std::move(options)),
      events_(std::move(events)),
      servers_(
          loop, reaper, server_options(options_),
          {.on_forked = [this](const std::string& hex,
                               ProcessId process) { forked(WorkerId::from_hex(hex), process); },
           .on_fork_failed =
               [this](const std::string& hex, const std::string& why) {
                 not_forked(WorkerId::from_hex(hex), why);
               },
           .on_exited = [this](int pid, int status) { exited(pid, status); },
           .on_died = [this](ForkServers::ServerId server,
                             const std::string& why) { server_died(server, why); }}) {
  if (options_.end_children) {
    reaper_.set_before_reap([this](int pid) {
      if (by_pid_.contains(pid)) signal_group(ProcessId{pid, 0}, SIGKILL);
    });
  }
  // Workers whose fork server died become children of this process, a subreaper.
  reaper_.set_orphan_handler([this](int pid, int status) { exited(pid, status); });
}

WorkerStarter::~WorkerStarter() {
  *alive_ = false;
  reaper_.set_orphan_handler(nullptr);
  reaper_.set_before_reap(nullptr);
  for (auto& [id, worker] : workers_) {
    if (worker.server == 0 && worker.process.pid > 0) reaper_.watch(worker.process.pid, [](int) {});
  }
}

void WorkerStarter::start() {
  servers_.start({.python = options_.python, .preload = {}, .interpreter = {}, .env = {}});
}

std::string WorkerStarter::canonical_python(const std::string& python) {
  if (python.empty() || python == options_.python) return "";
  auto known = canonical_.find(python);
  if (known != canonical_.end()) return known->second;
  namespace fs = std::filesystem;
  std::error_code ec1, ec2;
  std::string result = python;
  if (::access(python.c_str(), X_OK) != 0) {
    RT_WARN("a driver's interpreter {} is not on this node: its workers run {}", python,
            options_.python);
    result.clear();
  } else if (fs::path(python).parent_path() == fs::path(options_.python).parent_path() &&
             fs::canonical(python, ec1) == fs::canonical(options_.python, ec2) && !ec1 && !ec2) {
    // Two names in one directory, such as python3 and python3.11. The interpreter of a virtual
    // environment differs although it is a link to the same file, hence the check of the
    // directory.
    result.clear();
  }
  if (canonical_.size() < kMaxCanonical) canonical_[python] = result;
  return result;
}

std::string WorkerStarter::log_path(const WorkerId& id, int pid, bool err) const {
  return fmt::format("{}/logs/{}", options_.session_dir,
                     worker_log_name(id.hex(), pid > 0 ? std::to_string(pid) : "%p", err));
}

std::map<std::string, std::string> WorkerStarter::worker_args(const WorkerId& id) const {
  return {{"worker_id", id.hex()},
          {"node_manager_socket", options_.socket_path},
          {"session_dir", options_.session_dir},
          {"node_id", options_.node_id_hex}};
}

// ---- workers

void WorkerStarter::fail_later(const WorkerId& id, const std::string& why) {
  loop_.post([this, id, why, alive = alive_] {
    if (*alive) events_.on_failed(id, why);
  });
}

void WorkerStarter::spawn(const WorkerId& id, const WorkerKind& kind) {
  if (kind.language == proto::LANGUAGE_CPP) {
    spawn_cpp(id, kind.runtime_env);
  } else {
    spawn_python(id, kind.python.empty() ? options_.python : kind.python, kind.runtime_env);
  }
}

void WorkerStarter::spawn_python(const WorkerId& id, const std::string& python,
                                 const std::string& runtime_env) {
  ForkRequest request;
  request.worker_id_hex = id.hex();
  request.stdout_path = log_path(id, 0, false);
  request.stderr_path = log_path(id, 0, true);
  request.args = worker_args(id);
  if (!runtime_env.empty()) {
    request.args["runtime_env"] = runtime_env;
    request.args["python_path"] = options_.python_path;
    request.args["head_address"] = options_.head_address;
    request.args["token"] = options_.token;  // goes over a socket, never on a command line
  }
  request.env = options_.env;
  std::string why;
  ForkServers::ServerId server =
      servers_.fork(fork_server_key(python, runtime_env, options_.env), std::move(request), &why);
  if (server == 0) return fail_later(id, why);
  workers_[id].server = server;
}

void WorkerStarter::spawn_cpp(const WorkerId& id, const std::string& runtime_env) {
  if (options_.cpp_worker.empty() || ::access(options_.cpp_worker.c_str(), X_OK) != 0) {
    return fail_later(
        id, fmt::format("the C++ worker program {} is not installed on this node",
                        options_.cpp_worker.empty() ? "ray-cpp-worker" : options_.cpp_worker));
  }
  SpawnOptions spawn;
  spawn.argv = {options_.cpp_worker};
  spawn.env = options_.env;
  if (!runtime_env.empty()) {
    auto variables = env_vars_of(runtime_env, options_.env);
    if (!variables) return fail_later(id, variables.error().message);
    for (const auto& [name, value] : *variables) spawn.env[name] = value;
    spawn.argv.insert(spawn.argv.end(), {"--runtime-env", runtime_env});
  }
  for (const auto& [name, value] : worker_args(id)) {
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    spawn.argv.push_back(flag);
    spawn.argv.push_back(value);
  }
  spawn.stdout_path = log_path(id, 0, false);
  spawn.stderr_path = log_path(id, 0, true);
  auto process = spawn_process(spawn);
  if (!process) return fail_later(id, process.error().message);
  workers_[id].process = *process;
  by_pid_[process->pid] = id;
  reaper_.watch(process->pid, [this, pid = process->pid](int status) { exited(pid, status); });
  loop_.post([this, id, p = *process, alive = alive_] {
    if (*alive) events_.on_spawned(id, p);
  });
}

void WorkerStarter::forked(const WorkerId& id, ProcessId process) {
  auto it = workers_.find(id);
  if (it == workers_.end() || process.pid <= 0) return;
  it->second.process = process;
  by_pid_[process.pid] = id;
  if (it->second.kill_when_known) signal_process(process, SIGKILL);
  events_.on_spawned(id, process);
}

void WorkerStarter::kill(const WorkerId& id) {
  auto it = workers_.find(id);
  if (it == workers_.end()) return;
  if (it->second.process.pid > 0) {
    signal_process(it->second.process, SIGKILL);
  } else {
    it->second.kill_when_known = true;
    if (it->second.server && !is_awaited(it->second.server))
      servers_.give_up_importing(it->second.server);
  }
}

bool WorkerStarter::is_awaited(ForkServers::ServerId server) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& each) {
    const Process& worker = each.second;
    return worker.server == server && worker.process.pid == 0 && !worker.kill_when_known;
  });
}

void WorkerStarter::server_died(ForkServers::ServerId server, const std::string& why) {
  std::vector<WorkerId> unborn;
  std::vector<int> reaped;
  for (const auto& [id, worker] : workers_) {
    if (worker.server != server) continue;
    if (worker.process.pid == 0) {
      unborn.push_back(id);
    } else if (!signal_process(worker.process, 0)) {
      // The server had reaped this worker and ended before it could tell of that, or this process
      // has reaped it before it read which worker it was.
      reaped.push_back(worker.process.pid);
    }
  }
  for (const WorkerId& id : unborn) not_forked(id, why);
  for (int pid : reaped) ended(pid, ProcessEnd{});
}

void WorkerStarter::not_forked(const WorkerId& id, const std::string& why) {
  auto it = workers_.find(id);
  if (it == workers_.end()) return;
  servers_.release(it->second.server);
  workers_.erase(it);
  events_.on_failed(id, why);
}

void WorkerStarter::signal_all(int signal) {
  for (auto& [id, worker] : workers_) {
    if (worker.process.pid > 0) {
      signal_process(worker.process, signal);
    } else {
      worker.kill_when_known = true;
    }
  }
}

ProcessEnd WorkerStarter::end_of(const WorkerId& id, int pid, int status) const {
  ProcessEnd end;
  end.known = true;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  end.log_tail = file_tail(log_path(id, pid, true));
  return end;
}

void WorkerStarter::exited(int pid, int status) {
  auto it = by_pid_.find(pid);
  if (it == by_pid_.end()) return;  // an orphan that some worker had started
  ended(pid, end_of(it->second, pid, status));
}

void WorkerStarter::ended(int pid, const ProcessEnd& end) {
  auto it = by_pid_.find(pid);
  if (it == by_pid_.end()) return;
  WorkerId id = it->second;
  by_pid_.erase(it);
  auto worker = workers_.find(id);
  if (worker->second.server) servers_.release(worker->second.server);
  workers_.erase(worker);
  events_.on_exited(id, end);
}

}  // namespace rt::node
