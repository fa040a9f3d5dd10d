// A connection with another worker, and the templates of the tasks that come over it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "common/rpc/connection.h"
#include "observability/events/task_events.h"
#include "worker/core/task_channel.h"
#include "worker/worker.h"

namespace rt::worker {

// A connection to or from another worker and the state of what flows over it. Lives until the
// connection closes.
struct Link : TaskChannel, std::enable_shared_from_this<Link> {
  std::shared_ptr<rpc::Connection> connection;
  WorkerId peer;

  // This process as the owner of tasks that the peer executes.

  // The lease by which the peer's worker runs tasks of this process; 0: none.
  uint64_t lease_key = 0;
  // The actor that lives in the peer; nil: none.
  ActorId actor;
  std::vector<bool> templates_sent;
  // Whether the last GPU record named any GPUs.
  bool gpus_sent = false;
  // The parent of the tasks that were sent last.
  TaskId parent_sent;

  // This process as the executor of tasks that the peer owns.

  std::unordered_map<uint32_t, struct ExecTemplate*> templates;
  std::unique_ptr<proto::JobConfig> job_config;
  // GPUs assigned to the tasks that arrive.
  std::vector<std::string> gpu_ids;
  // The parent of the tasks that arrive.
  TaskId parent;
  // The peer has been told that this process records its submissions.
  bool recording_announced = false;
  // The peer records its submissions itself.
  bool submissions_recorded = false;
  // For events of the peer's tasks: event_owner is the index of the peer among the strings of the
  // event batch with the number events_of.
  uint64_t events_of = 0;
  uint32_t event_owner = 0;
  bool open = true;
};

// The link that a core was told of.
inline Link& link_of(TaskChannel& channel) { return static_cast<Link&>(channel); }

// A template as executors see it, shared by all connections that sent the same bytes.
struct ExecTemplate {
  proto::TaskTemplate spec;
  std::unique_ptr<LoadedFunction> loaded;
  std::string display;  // Bare function name, or Class.method.
  int64_t calls = 0;    // Executed in this process, counted for max_calls.
  // For events of its tasks: the indexes of its strings in the event batch with the number
  // events_of.
  uint64_t events_of = 0;
  TaskEventCommon event;
  bool ran = false;  // Has run in this process, so the function is loaded.
};

}  // namespace rt::worker
