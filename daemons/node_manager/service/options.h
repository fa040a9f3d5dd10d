// The options of NodeManager. main.cc fills them in from flags, tests directly.
#pragma once

#include <map>
#include <string>

#include "common/base/ids.h"
#include "common/config/settings.h"
#include "common/net/address.h"
#include "common/resources/resource_set.h"

namespace rt::node {

struct NodeManagerOptions {
  NodeId node_id;
  std::string node_ip = "127.0.0.1", node_name;
  net::Address head;
  std::string token;
  std::string session_dir;  // must exist, with the subdirectories logs/ and sockets/
  std::string socket_path;  // path of the Unix socket to listen on
  int unix_listen_fd = -1;  // inherited socket bound at socket_path; -1: bind it
  net::Address tcp;         // TCP address to listen on, if there is no tcp_listen_fd
  int tcp_listen_fd = -1;
  // Where GET /metrics listens: the port (0: any free one), or an inherited socket.
  int metrics_port = 0, metrics_listen_fd = -1;
  std::string store_socket;  // empty: a node without an object store (tests)
  ResourceSet total;
  std::map<std::string, std::string> labels;
  // The devices in CUDA_VISIBLE_DEVICES; devices beyond the list are named by their number.
  std::vector<std::string> gpu_names;
  bool is_head_node = false;
  // The programs that the node starts.
  struct Programs {
    // The workers' interpreter, the directory with the `ray` package, the C++ worker program.
    std::string python = "/usr/bin/python3", python_path, cpp_worker;
    std::map<std::string, std::string> env;  // added to the environment of every worker
  };
  Programs programs;
  Settings settings;
  uint64_t seed = 1;  // for the generator of worker ids

  std::string shown_name() const { return node_name.empty() ? node_ip : node_name; }
  std::string session_name() const { return session_dir.substr(session_dir.rfind('/') + 1); }
  std::string log_directory() const { return session_dir + "/logs"; }
};

}  // namespace rt::node
