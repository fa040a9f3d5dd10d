// Starts worker processes of every kind and reports how they end. Python workers are forked by
// fork servers (fork_servers.h), C++ workers are started directly.
//
// Threads: the loop's. Events come from the loop, never from inside a call to this class.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/base/ids.h"
#include "daemons/node_manager/core/types.h"
#include "daemons/node_manager/process/fork_servers.h"

namespace rt::node {

struct WorkerStarterOptions {
  std::string python = "/usr/bin/python3";  // the node's own interpreter
  std::string python_path;                  // directory that holds the `ray` package
  std::string cpp_worker;                   // path of the C++ worker program; empty: not installed
  std::string session_dir, socket_path, node_id_hex;
  std::map<std::string, std::string> env;  // added to the environment of every worker
  bool end_children = true;                // kill a worker's process group when the worker ends
  // How long a fork server with preloaded modules stays without workers, and how long it is not
  // started again after its imports ended it.
  int64_t idle_server_us = 600'000'000;
  int64_t crash_pause_us = 10'000'000;
  // For workers that fetch their runtime environment from the head before they register.
  std::string head_address, token;
};

struct WorkerStarterEvents {
  std::function<void(const WorkerId&, ProcessId)> on_spawned;
  std::function<void(const WorkerId&, const std::string& why)> on_failed;  // there is no process
  std::function<void(const WorkerId&, const ProcessEnd&)> on_exited;       // after on_spawned
};

class WorkerStarter {
 public:
  WorkerStarter(net::Loop& loop, Reaper& reaper, WorkerStarterOptions options,
                WorkerStarterEvents events);
  ~WorkerStarter();

  // Starts the fork server of the node's own interpreter, so that its imports are done early.
  void start();
  // Answered by on_spawned or on_failed.
  void spawn(const WorkerId& id, const WorkerKind& kind);
  // Sends SIGKILL now, or as soon as the process id is known.
  void kill(const WorkerId& id);
  // Sends `signal` to every worker. A worker that is still being started gets SIGKILL instead.
  void signal_all(int signal);
  bool has_processes() const { return !workers_.empty(); }
  // Kills the fork servers for good and returns whether none is left. To be called again until it
  // returns true: a node that has ended leaves no process that is about to end.
  bool end_servers() { return servers_.end(); }
  // Returns the value of WorkerKind::python for an interpreter: empty for the node's own one, also
  // under another name, and for one that this machine does not have.
  std::string canonical_python(const std::string& python);
  // `pid` 0 gives the path with "%p" in place of the process id.
  std::string log_path(const WorkerId& id, int pid, bool err) const;

 private:
  struct Process {
    ProcessId process;                 // pid 0 until the fork server has replied
    ForkServers::ServerId server = 0;  // the server that forks it; 0 for a C++ worker
    bool kill_when_known = false;      // kill() came before the process id was known
  };
  void server_died(ForkServers::ServerId server, const std::string& why);
  void spawn_python(const WorkerId& id, const std::string& python, const std::string& runtime_env);
  void spawn_cpp(const WorkerId& id, const std::string& runtime_env);
  void forked(const WorkerId& id, ProcessId process);
  void exited(int pid, int status);
  void ended(int pid, const ProcessEnd& end);
  // Forgets a worker without a process, and says why there is none.
  void not_forked(const WorkerId& id, const std::string& why);
  bool is_awaited(ForkServers::ServerId server) const;
  void fail_later(const WorkerId& id, const std::string& why);  // on_failed from the loop
  std::map<std::string, std::string> worker_args(const WorkerId& id) const;
  ProcessEnd end_of(const WorkerId& id, int pid, int status) const;

  net::Loop& loop_;
  Reaper& reaper_;
  WorkerStarterOptions options_;
  WorkerStarterEvents events_;
  ForkServers servers_;
  std::map<WorkerId, Process> workers_;
  std::unordered_map<int, WorkerId> by_pid_;
  std::map<std::string, std::string> canonical_;  // results of canonical_python()
  // Tasks posted to the loop check whether this object still exists.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
