// A task that has arrived and not started.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/proto/common.pb.h"
#include "daemons/object_store/client/store_client.h"
#include "worker/core/task_line.h"
#include "worker/service/link.h"
#include "worker/value.h"

namespace rt::worker {

struct IncomingTask : LineTask {
  // The `caller` of the line. Null for the creation of an actor, whose reply goes to the
  // node-manager.
  std::shared_ptr<Link> link;
  ExecTemplate* function = nullptr;
  TaskId id;
  int attempt = 0;
  // For generators, from earlier attempts: the items that the owner has, and how many of them were
  // taken.
  uint32_t items_known = 0, items_taken = 0;
  bool waits_for_consumer = false;  // its generator may not be further ahead
  std::vector<Value> args;
  struct Fetch {
    size_t index = 0;
    ObjectId id;
    std::vector<store::Location> locations;
    proto::WorkerAddress owner;
  };
  std::vector<Fetch> to_fetch;  // Arguments in stores, until they are fetched.
  // Is under way, or over. Constant, because who announces what comes goes by this list, also when
  // the task has given its arguments up meanwhile.
  std::shared_ptr<const std::vector<Fetch>> fetch;
  uint64_t fetch_ticket = 0;
  Keepalive holds_arguments;   // see StoreClient::get_arguments()
  bool found_no_room = false;  // For an argument, in this node's store.
  std::string failure;         // The error of a task that has `failed`, encoded.
  TaskId parent;               // nil: not known.
  int64_t created_us = 0;
  bool without_arguments() const { return args.empty() || args.front().kind == ValueKind::kNone; }
};

// Returns the task to its owner as not started. `why` is the error of a call that the actor
// refuses; one that was cancelled has none.
void return_unstarted(const IncomingTask& task, std::string_view why = {});

}  // namespace rt::worker
