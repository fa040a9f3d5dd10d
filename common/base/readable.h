// Formats amounts, times and texts for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace rt {

// "0B", "16.17GiB": in binary units.
std::string binary_bytes(double bytes);
// An amount of a resource without needless digits: 2.0, 0.5, 0.0001.
std::string amount(double value);
// "the driver of job 01000000 (pid 7)" or "worker 0123456789abcdef (pid 7)"; without a pid of 0.
std::string process_name(const WorkerId& id, int pid);
// The local time as 2024-01-31 12:34:56; empty for 0.
std::string local_time(int64_t wall_ms);
// Cuts a text longer than `most` bytes down to its beginning and its end, with a line between them
// that says how many bytes are left out.
std::string shortened(std::string_view text, size_t most);

}  // namespace rt
