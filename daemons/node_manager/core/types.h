// Words shared by the files of this directory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"

namespace rt::node {

// An owner is the connection its demand came over: drivers and workers of this node, and of others
// that were redirected here.
using OwnerId = uint64_t;
using LeaseId = uint64_t;

// What a worker process is made of: processes are interchangeable only within one kind.
struct WorkerKind {
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::string python;       // interpreter; empty: the node's own
  std::string runtime_env;  // JSON the process was started for; empty: none
  friend auto operator<=>(const WorkerKind&, const WorkerKind&) = default;
};

// How a process ended, as the operating system tells it.
struct ProcessEnd {
  bool known = false;  // false: nobody saw it (its reaper died, or it is not our descendant)
  int exit_code = 0;
  int signal = 0;        // > 0: killed by it
  std::string log_tail;  // last lines of its stderr
};

}  // namespace rt::node
