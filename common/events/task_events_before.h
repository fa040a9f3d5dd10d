// Batches as earlier releases packed them; histories on disk have them. Read, not written.
//
// One zstd frame, little-endian: u32 version, u32 string count, then each string (u32 length,
// bytes); node ip and worker id as strings, u32 flags (1: driver, 2: node id as string and u32 pid
// follow, 4: C++). Versions 1 and 2 then have rows of fixed size. Version 3 has u32 counts of
// events, of tails (16 bytes each) and of commons, these, and a column of varints for each of:
// tail, leading number, common, start, creation, and the three durations; numbers and times are
// differences to the event before, zigzag-coded.
#pragma once

#include <string_view>

#include "common/events/task_events.h"
#include "common/events/wire.h"

namespace rt::events {

Error not_a_batch(std::string_view why);
TaskEventCommon get_common(Reader& in);
Result<TaskEventBatchData> unpack_before_4(std::string_view packed);

}  // namespace rt::events
