// Starts, finds and ends the processes of a node, for rayctl, ray.init() and ray::Init(). All
// functions block; there is no loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace rt::launch {

// The HTTP interface of a head.
struct DashboardOptions {
  bool include = true;
  std::string host;         // Empty: 127.0.0.1.
  std::optional<int> port;  // nullopt: 8265 or the next free one; 0: any free one.
};

// Amounts that a node offers; those that are not given are detected.
struct ResourceOptions {
  std::optional<double> num_cpus, num_gpus;
  std::optional<int64_t> memory, object_store_memory;  // In bytes.
  std::map<std::string, double> custom;
};

struct NodeOptions {
  bool head = false;
  int port = 6379;      // For a head; 0: any free one.
  std::string address;  // For a node that joins: HOST:PORT of the head.
  // Empty: RAY_NODE_IP_ADDRESS, else detected. ray.init() passes 127.0.0.1.
  std::string node_ip;
  int node_manager_port = 0;
  int metrics_export_port = 0;  // For GET /metrics; 0: any free one.
  DashboardOptions dashboard;   // For a head.
  std::string state_dir;        // For a head: its durable state; empty: the session directory.
  std::string node_name;
  ResourceOptions resources;
  std::map<std::string, std::string> labels;
  std::string temp_dir;          // Empty: $RAY_TMPDIR or /tmp/ray.
  std::string plasma_directory;  // Empty: /dev/shm.
  std::string config_file;
  std::map<std::string, std::string> system_config;  // Settings by our names or Ray's.
  std::string python_executable;  // For workers; empty: /usr/bin/python3 or $RAY_PYTHON.
  // For ray.init(): the node ends with this process (by a lifeline descriptor), and is not recorded
  // for `rayctl stop`.
  bool private_to_parent = false;
  bool wait_ready = true;  // false: start_node() returns before the daemons are ready.
};

struct StartedProcess {
  std::string name;  // "ray-head", "ray-node-manager" or "ray-object-store"
  int pid = 0;
  uint64_t start_time = 0;           // As in /proc/PID/stat, since process ids are reused.
  std::vector<std::string> command;  // Program and arguments, for starting the process again.
};

struct StartedNode {
  std::string session_dir, session_name;
  std::string head_address;  // As ip:port.
  std::string node_ip;
  int node_manager_port = 0;
  int metrics_export_port = 0;  // Not recorded: 0 in nodes that were read from a record.
  std::string node_manager_socket, object_store_socket;
  std::string node_id_hex;
  std::vector<StartedProcess> processes;
  std::vector<std::string> warnings;  // For the user; not recorded.
  // For a node that is private to its parent: closing this descriptor ends the node.
  int lifeline_fd = -1;
};

// Starts a node. Binds every listening socket first, so that a busy port is one clear error and
// leaves nothing running; starts the daemons together, with the sockets as inherited descriptors;
// then waits until all are READY. On failure everything that was started is ended, and the error
// has the last lines that the failed daemon wrote. `settings_option` is what the user calls
// options.system_config, for errors about it.
Result<StartedNode> start_node(const NodeOptions& options,
                               const std::string& settings_option = "--system-config");

// The end of a file of any size, such as a log: at most `max_bytes` of it. nullopt, with errno set,
// when it cannot be read.
std::optional<std::string> read_end_of_file(const std::string& path, size_t max_bytes);
// The last words of a process of the node, as "It said:\n...": the end of its stderr, else of its
// log. Empty when there is neither.
std::string last_words(const StartedNode& node, const std::string& process);

// HOST:PORT of a recorded head that lives and listens on `port`. The records say so: to ask
// whatever listens there would hand the token to a stranger.
std::optional<std::string> living_head(const std::string& temp_root, int port);
// The recorded node below `temp_root` whose head listened on `port` and has ended, while its
// node-manager still lives and waits for the head.
std::optional<StartedNode> node_without_head(const std::string& temp_root, int port);
// Restarts the head of such a node with its command line, on its address and state, so that the
// cluster goes on where it was. Returns the node with the new head, recorded for `rayctl stop`. An
// error leaves the node as it was.
Result<StartedNode> restart_head(const StartedNode& node);

// Ends processes, which are identified by id and start time. SIGTERM goes to starters first, then
// to node-managers, which end their workers and leave the cluster while the store and the head
// still answer, then to stores, then to heads. Each turn begins when the one before has ended, or
// has used up half of the time that is left. Those that live after `grace_us` get SIGKILL; 0 sends
// only that. Returns how many were alive, and how many had to be killed.
struct StopResult {
  int found = 0, killed = 0;
};
StopResult stop_processes(const std::vector<StartedProcess>& processes, int64_t grace_us);

// The nodes recorded below the temp root (<root>/session_*/node_*.json) that have live processes.
std::vector<StartedNode> recorded_nodes(const std::string& temp_root);
// The daemons of this user that were started below the temp root and still run, whether or not the
// files of their session exist. Those that end with the program that started them are not among
// them.
std::vector<StartedProcess> started_daemons(const std::string& temp_root);
// Removes the record and the sockets of a node, and the address file if it names this cluster.
void forget_node(const StartedNode& node);
// The same for every recorded node that has no live process. Removes the sockets at which nobody
// listens from every session.
void forget_dead_nodes(const std::string& temp_root);

// The directory of the sessions: `option`, else RAY_TMPDIR, else /tmp/ray (/tmp/ray-<uid> when that
// belongs to another user).
std::string temp_root(const std::string& option = "");
// HOST:PORT of a cluster on this machine: the one that <temp root>/ray_current_cluster names, else
// the newest with a recorded node here, else the newest that a program started for itself
// (ray.init() without an address). kNotFound says how to start one.
Result<std::string> running_cluster(const std::string& temp_root);
// HOST:PORT from `option`, else RAY_ADDRESS, else running_cluster().
Result<std::string> resolve_address(const std::string& option);

// The cluster token: from RAY_AUTH_TOKEN, else from the file RAY_AUTH_TOKEN_PATH, else from
// ~/.ray/auth_token, which is created (mode 0600, 64 hex digits) with `create`. Empty when
// RAY_AUTH_MODE=disabled. kNotFound: there is none; kInvalid: one cannot be used, with the remedy.
Result<std::string> auth_token(bool create);
// Where auth_token() finds the token: "RAY_AUTH_TOKEN", or the name of a file, as
// texts of errors name it.
std::string auth_token_source();

// The path of a daemon's program: in $RAY_BIN, else near the library that contains this code, else
// next to this executable. kNotFound names the remedy.
Result<std::string> daemon_path(const std::string& name);

}  // namespace rt::launch
