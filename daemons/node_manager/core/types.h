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
  // It has GPUs. Libraries look once for the devices that a process may use, so that what needs
  // none never runs where something with devices has run, and the other way round.
  bool gpu = false;
  friend auto operator<=>(const WorkerKind&, const WorkerKind&) = default;
};

// Names a room of this node (core/room.h): a bundle of a placement group that it holds, or, with a
// nil group, what the node has besides its bundles. In a demand, index -1 means any bundle of the
// group.
struct RoomKey {
  GroupId group;
  int index = -1;
  bool is_node() const { return group.is_nil(); }
  friend auto operator<=>(const RoomKey&, const RoomKey&) = default;
};

// How a process ended, according to the operating system.
struct ProcessEnd {
  bool known = false;  // false: the process could not be reaped, so the rest is unknown
  int exit_code = 0;
  int signal = 0;        // the signal that killed the process; 0: none
  std::string log_tail;  // last lines of its stderr
};

}  // namespace rt::node
