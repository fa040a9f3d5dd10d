// Follows the logs of a whole cluster at once.
#pragma once

#include <string>

#include "observability/state/logs.h"

namespace rt::cli {

struct FollowLogs {
  std::string node_id, node_ip;  // One node; empty: all nodes, including those that join later.
  std::string glob;              // The names of files, relative to the session's `logs` directory.
  int64_t lines = 1000;  // How many last lines to show of each file that exists at the start.
  int64_t interval_us = 500'000;    // The pause between two rounds over all files.
  int64_t timeout_us = 30'000'000;  // The limit for each answer.
  bool raw = false;  // Keep the marker lines, and show file names instead of functions.
};
// Prints "(NAME pid=PID, ip=IP) line" for workers, where NAME is the function or the actor class,
// and "(FILE, ip=IP) line" for other files, until the output is closed or the process is ended by a
// signal. Waits for a head that restarts (head_wait.h). Returns an error when the head stays away
// or no living node answers any more.
Status follow_logs(const state::Cluster& cluster, const FollowLogs& what);

}  // namespace rt::cli
