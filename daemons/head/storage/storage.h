// The interface to what must survive the head. It is narrow, so that a replicated engine can
// replace the embedded one.
#pragma once

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/proto/head.pb.h"
#include "daemons/head/core/records.h"

namespace rt::head {

// Runs a task in the thread that owns the head's core. The storage calls it from its own thread.
using PostTask = std::function<void(std::function<void()>)>;

class Storage {
 public:
  using Done = std::function<void(Status)>;

  // The destructor finishes batches that were accepted.
  virtual ~Storage() = default;
  // Returns all tables. Blocks; must be called once, before the first apply().
  virtual Result<Tables> load() = 0;
  // Writes the batch atomically, in the order of the calls, and posts `done` when it is durable.
  // After kOutOfDisk or kIo nothing was changed and later batches may succeed; the message names
  // file, cause and remedy.
  virtual void apply(Batch batch, Done done) = 0;
};

// Task events as nodes report them. The size is bounded, also by the disk's space; the oldest
// events are dropped first and counted.
class History {
 public:
  virtual ~History() = default;
  // Whether append() wrote the batch, or an earlier append() did.
  enum class Outcome { kWritten, kDuplicate };
  // Posts `done` when the batch is written, or with an error when it could not be kept; its events
  // are then counted as dropped. `source` names a node that numbers its batches (`row`) and may
  // send a batch again: a number up to the node's last one is already there (kDuplicate). An empty
  // source sends each batch once.
  virtual void append(proto::TaskEventBatch batch, std::string source,
                      std::function<void(Result<Outcome>)> done) = 0;
  // Writes a few bytes to find out whether writing works again, and posts `done` with the result.
  virtual void probe(std::function<void(Status)> done) = 0;
  // Posts `done` with the reply, which includes everything that was appended before this call.
  virtual void query(const proto::GetTaskEventsRequest& request,
                     std::function<void(Result<proto::GetTaskEventsReply>)> done) = 0;
};

}  // namespace rt::head
