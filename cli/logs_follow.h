// Follows the logs of a whole cluster at once.
#pragma once

#include <string>

#include "common/state/logs.h"

namespace rt::cli {

struct FollowLogs {
  std::string node_id, node_ip;  // one node; empty: all there are and all that come
  std::string glob;
  int64_t lines = 1000;  // the last ones of what is there at the beginning
  int64_t interval_us = 500'000;
  int64_t timeout_us = 30'000'000;
  bool raw = false;  // with markers, and the file's name before each line
};
// Prints "(NAME pid=PID, ip=IP) line" of workers, NAME that of the function or the actor class, and
// "(FILE, ip=IP) line" of other files, until this process is interrupted. A head that restarts is
// waited for (head_wait.h). Ends with an error when no node can be asked any more.
Status follow_logs(const state::Cluster& cluster, const FollowLogs& what);

}  // namespace rt::cli
