// What a node-manager is told at its start; made by main.cc from flags, by tests directly.
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
  std::string session_dir;  // exists, with logs/ and sockets/
  std::string socket_path;  // of the Unix listener
  int unix_listen_fd = -1;  // inherited; else bound at socket_path
  net::Address tcp;         // unless tcp_listen_fd
  int tcp_listen_fd = -1;
  int metrics_port = 0, metrics_listen_fd = -1;  // of GET /metrics; 0: any free one
  std::string store_socket;                      // empty: a node without an object store (tests)
  ResourceSet total;
  std::map<std::string, std::string> labels;
  std::vector<std::string>
      gpu_names;  // of the visible devices, when a variable says which; else they are numbered
  bool is_head_node = false;
  std::string python = "/usr/bin/python3", python_path, cpp_worker;
  std::map<std::string, std::string> worker_env;
  Settings settings;
  uint64_t seed = 1;
};

}  // namespace rt::node
