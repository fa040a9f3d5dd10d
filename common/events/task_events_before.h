// Reads batches in the formats of earlier releases, which histories on disk still contain. They are
// never written.
//
// Format: one zstd frame, little-endian: u32 version, u32 string count, then each string (u32
// length, bytes); node ip and worker id as strings, u32 flags (1: driver, 2: node id as string and
// u32 pid follow, 4: C++). In versions 1 and 2 rows of fixed size follow. In version 3 follow u32
// counts of events, tails and commons, the tails (16 bytes each), the commons, and eight columns of
// varints: tail, leading number, common, start, creation, and the three durations. Leading numbers,
// starts and creation times are zigzag-coded differences to the previous event.
#pragma once

#include <string_view>

#include "common/events/task_events.h"
#include "common/events/wire.h"

namespace rt::events {

// The error kInvalid for damaged batches of any version.
Error not_a_batch(std::string_view why);
// Reads one TaskEventCommon. Its packed form is the same in versions 3 and 4; from version 5 on it
// has a placement group.
TaskEventCommon get_common(Reader& in, uint32_t version);
// Unpacks a batch of version 1 to 3. Does not check that indexes of strings are in range.
Result<TaskEventBatchData> unpack_before_4(std::string_view packed);

}  // namespace rt::events
