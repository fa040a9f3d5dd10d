// Types shared by the files of this directory.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"

namespace rt::node {

// Identifies the connection over which a driver or worker sends its demand. The process may live
// on this node, or on another one from which it was redirected.
using OwnerId = uint64_t;
using LeaseId = uint64_t;

// The properties that are fixed when a worker process starts. Processes are interchangeable only
// within one kind.
struct WorkerKind {
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::string python;       // path of the interpreter; empty: the node's own
  std::string runtime_env;  // JSON; empty: none
  friend auto operator<=>(const WorkerKind&, const WorkerKind&) = default;
};

// How a process ended, according to the operating system.
struct ProcessEnd {
  bool known = false;  // false: the process could not be reaped, so the rest is unknown
  int exit_code = 0;
  int signal = 0;        // the signal that killed the process; 0: none
  std::string log_tail;  // last lines of its stderr
};

}  // namespace rt::node
