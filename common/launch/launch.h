// Starting the processes of a node: used by rayctl, ray.init() and ray::Init(). Blocking, without a
// loop of its own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace rt::launch {

struct NodeOptions {
  bool head = false;
  int port = 6379;      // head: 0 = free port
  std::string address;  // joining: HOST:PORT of the head
  std::string node_ip;  // empty: RAY_NODE_IP_ADDRESS, else detected; ray.init() passes 127.0.0.1
  int node_manager_port = 0;
  int metrics_export_port = 0;        // of GET /metrics; 0: any free one
  bool include_dashboard = true;      // head: its HTTP interface
  std::string dashboard_host;         // empty: 127.0.0.1
  std::optional<int> dashboard_port;  // none: 8265 or the next free one; 0: any free one
  std::string
      state_dir;  // head: where its durable state is, or will be; empty: the session directory
  std::string node_name;
  std::optional<double> num_cpus, num_gpus;
  std::optional<int64_t> memory, object_store_memory;  // bytes
  std::map<std::string, double> resources;
  std::map<std::string, std::string> labels;
  std::string temp_dir;          // empty: $RAY_TMPDIR or /tmp/ray
  std::string plasma_directory;  // empty: /dev/shm
  std::string config_file;
  std::map<std::string, std::string> system_config;  // settings by name
  std::string python_executable;  // for workers; empty: /usr/bin/python3 or $RAY_PYTHON
  bool private_to_parent =
      false;  // ray.init(): ends with this process (a lifeline descriptor), not recorded for `stop`
  bool wait_ready = true;
};

struct StartedProcess {
  std::string name;  // ray-head ...
  int pid = 0;
  uint64_t start_time = 0;           // of /proc/PID/stat: ids are reused
  std::vector<std::string> command;  // program and arguments, for starting it again
};

struct StartedNode {
  std::string session_dir, session_name;
  std::string head_address;  // ip:port
  std::string node_ip;
  int node_manager_port = 0;
  int metrics_export_port = 0;  // 0 for a recorded node: not recorded
  std::string node_manager_socket, object_store_socket;
  std::string node_id_hex;
  std::vector<StartedProcess> processes;
  std::vector<std::string> warnings;  // for the user; not recorded
  int lifeline_fd = -1;               // private_to_parent: closing it ends the node
};

// Binds every listening socket first (so that a busy port is one clear error and nothing is left
// running), starts the daemons at once with the sockets as inherited descriptors, waits for their
// READY. On failure everything started is ended and the error has the first lines of the culprit's
// log.
Result<StartedNode> start_node(const NodeOptions& options);

// For nodes started without waiting, when a connection to one fails: which of its processes ended,
// how, and their last words. Empty while all run. Reaps children.
std::string failure_report(const StartedNode& node);
// "It said:\n...": the end of what a process of the node wrote to stderr, else to its log; empty
// when nothing.
std::string last_words(const StartedNode& node, const std::string& process);

// The recorded node of the temp root whose head listened on `port` and has ended, while its
// node-manager still lives and waits.
std::optional<StartedNode> node_without_head(const std::string& temp_root, int port);
// Starts the head of such a node again, with its command line, on its address and state: the
// cluster goes on where it was. Returns the node with the new head, recorded for `stop`; an error
// leaves the node as it was.
Result<StartedNode> restart_head(const StartedNode& node);

// Ends processes by id and start time: SIGTERM, then SIGKILL after `grace_us`. Returns how many
// were alive and how many had to be killed.
struct StopResult {
  int found = 0, killed = 0;
};
StopResult stop_processes(const std::vector<StartedProcess>& processes, int64_t grace_us);

// Sessions recorded under the temp root (<root>/session_*/node_*.json), those with live processes.
std::vector<StartedNode> recorded_nodes(const std::string& temp_root);
void forget_node(const StartedNode& node);  // removes its record, sockets, and the address file
                                            // when it names this cluster
void forget_dead_nodes(const std::string& temp_root);  // the same for every recorded node none of
                                                       // whose processes lives

// `option`, RAY_TMPDIR, or /tmp/ray (/tmp/ray-<uid> when that is another user's).
std::string temp_root(const std::string& option = "");
// HOST:PORT of a cluster of this machine: the one <temp root>/ray_current_cluster names, else the
// newest one with a recorded node here, else the newest one that a program started for itself
// (ray.init() without an address). kNotFound says how to start one.
Result<std::string> running_cluster(const std::string& temp_root);
// HOST:PORT from `option`, RAY_ADDRESS, or running_cluster().
Result<std::string> resolve_address(const std::string& option);

// The cluster token: RAY_AUTH_TOKEN, RAY_AUTH_TOKEN_PATH, ~/.ray/auth_token; created (0600, 64 hex
// digits) when `create`. Empty when RAY_AUTH_MODE=disabled.
Result<std::string> auth_token(bool create);

// The directory of the daemons: next to this executable or library, $RAY_BIN, or the installed one.
Result<std::string> daemon_path(const std::string& name);

}  // namespace rt::launch
