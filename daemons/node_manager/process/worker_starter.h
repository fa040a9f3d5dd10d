// Starts worker processes of every kind and tells how they end: Python ones through fork servers
// (one per interpreter, bounded), C++ ones directly. A fork server that dies is started again, with
// a growing pause and a bound.
//
// Threads: the loop's. Events come from the loop, never from inside a call.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/base/ids.h"
#include "daemons/node_manager/core/types.h"
#include "daemons/node_manager/process/fork_server.h"

namespace rt::node {

struct WorkerStarterOptions {
  std::string python = "/usr/bin/python3";  // of kinds that name none
  std::string python_path;                  // directory that holds the `ray` package
  std::string cpp_worker;                   // program; empty: none installed
  std::string session_dir, socket_path, node_id_hex;
  std::map<std::string, std::string> env;  // of every worker
  bool end_children = true;                // what a worker started ends with it (its process group)
  std::string head_address,
      token;  // for those that fetch their runtime environment from the head before they register
};

struct WorkerStarterEvents {
  std::function<void(const WorkerId&, ProcessId)> on_spawned;
  std::function<void(const WorkerId&, const std::string& why)> on_failed;
  std::function<void(const WorkerId&, const ProcessEnd&)> on_exited;
};

class WorkerStarter {
 public:
  WorkerStarter(net::Loop& loop, Reaper& reaper, WorkerStarterOptions options,
                WorkerStarterEvents events);
  ~WorkerStarter();

  // The node's own fork server starts importing.
  void start();
  void spawn(const WorkerId& id, const WorkerKind& kind);
  void kill(const WorkerId& id);
  void signal_all(int signal);
  bool has_processes() const { return !workers_.empty(); }
  // The interpreter's name in a WorkerKind: "" for the node's own and for one this machine does not
  // have.
  std::string canonical_python(const std::string& python);
  std::string log_path(const WorkerId& id, int pid, bool err) const;

 private:
  struct Process {
    ProcessId process;   // pid 0: asked for, not there yet
    std::string python;  // whose fork server; C++: empty
    bool kill_when_known = false;
  };
  struct Server {
    std::unique_ptr<ForkServer> server;
    int deaths = 0;  // in a row, without having become ready
    int64_t used_us = 0;
    net::Loop::TimerId restart = 0;
  };

  Server* server_for(const std::string& python, std::string* why);
  void launch(const std::string& python, Server& entry);
  void server_died(const std::string& python, const std::string& why);
  void spawn_python(const WorkerId& id, const std::string& python, const std::string& runtime_env);
  void spawn_cpp(const WorkerId& id, const std::string& runtime_env);
  void forked(const WorkerId& id, ProcessId process);
  void exited(int pid, int status);
  void fail_later(const WorkerId& id, const std::string& why);
  std::map<std::string, std::string> worker_args(const WorkerId& id) const;
  ProcessEnd end_of(const WorkerId& id, int pid, int status) const;

  net::Loop& loop_;
  Reaper& reaper_;
  WorkerStarterOptions options_;
  WorkerStarterEvents events_;
  std::map<std::string, Server> servers_;
  std::map<WorkerId, Process> workers_;
  std::unordered_map<int, WorkerId> by_pid_;
  std::map<std::string, std::string> canonical_;
  std::shared_ptr<bool> alive_ =
      std::make_shared<bool>(true);  // posted tasks look whether this object still is
};

}  // namespace rt::node
