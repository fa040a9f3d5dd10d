// Where the head keeps what must survive it. Narrow, so that a replicated engine can take the place
// of the embedded one.
#pragma once

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/proto/head.pb.h"
#include "daemons/head/core/records.h"

namespace rt::head {

// Runs a task in the thread that owns the head's core. Called from the storage's own thread.
using PostTask = std::function<void(std::function<void()>)>;

class Storage {
 public:
  using Done = std::function<void(Status)>;

  virtual ~Storage() = default;  // finishes what was accepted
  // All tables. Blocking; once, before the first apply().
  virtual Result<Tables> load() = 0;
  // All of it or nothing, in the order of the calls; `done` is posted when it is durable.
  // kOutOfDisk, kIo: nothing was changed, the message names file, cause and remedy; later batches
  // may succeed.
  virtual void apply(Batch batch, Done done) = 0;
};

// Task events as they came. Bounded, also by the disk's space: the oldest go first and are counted.
class History {
 public:
  virtual ~History() = default;
  enum class Taken { kNow, kBefore };
  // `done` is posted when it is there, or could not be kept and is counted. `source`: a node whose
  // batches are numbered (`row`) and may come again: those whose number is not beyond the last of
  // that node are there already (kBefore). Empty: it comes once.
  virtual void append(proto::TaskEventBatch batch, std::string source,
                      std::function<void(Result<Taken>)> done) = 0;
  // Writes next to nothing, to find out whether it can be written again. `done` is posted.
  virtual void probe(std::function<void(Status)> done) = 0;
  // Sees everything appended before. `done` is posted.
  virtual void query(const proto::GetTaskEventsRequest& request,
                     std::function<void(Result<proto::GetTaskEventsReply>)> done) = 0;
};

}  // namespace rt::head
