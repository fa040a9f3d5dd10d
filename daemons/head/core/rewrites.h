// Writes again what the disk did not take. Changes that promise no durability stay in memory when
// their batch fails, and are written again every storage_retry_ms until the disk takes them.
#pragma once

#include "daemons/head/core/head_parts.h"

namespace rt::head {

// Adds to the event's batch what has ended by earlier batches that the disk has refused, or may yet
// refuse. Otherwise the disk could lose what these jobs and actors need before it has their ends: a
// head that starts then would take them for living, and not have their code or their packages.
void write_ends(HeadParts& head);

class Rewrites {
 public:
  // `head` must outlive the rewrites.
  explicit Rewrites(HeadParts& head) : head_(head) {}

  // Notes that a batch was written or could not be written; see HeadSink::persist().
  void persisted(uint64_t id, const Status& status, Now now);

 private:
  void rewrite_dirty();

  HeadParts& head_;
  Timers::Id retry_timer_ = 0;
};

}  // namespace rt::head
