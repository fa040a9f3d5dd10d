// The decisions of RefTable, for the service, a test or the simulator to carry out.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/core/object_entry.h"

namespace rt::worker {

class RefSink {
 public:
  virtual ~RefSink() = default;
  // Tells `owner` that `borrower` counts these objects. The answer is to lead to
  // confirm_borrows().
  virtual void add_borrower(const proto::WorkerAddress& owner, const std::vector<ObjectId>& ids,
                            const WorkerId& borrower) = 0;
  // Tells `owner` that this process lets go of an object that had been lent to it `lent` times.
  virtual void remove_borrower(const proto::WorkerAddress& owner, const ObjectId& id,
                               uint32_t lent) = 0;
  // An owned object is gone, so its copies are to be freed.
  virtual void free_object(ObjectEntry& entry) = 0;
  virtual void actor_out_of_scope(const ActorId& actor) = 0;
  // The consumer takes no more items of this task's generator.
  virtual void stream_dropped(const TaskId& task) = 0;
};

}  // namespace rt::worker
