// Files that a user names and that are read whole: settings, labels, tokens.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace rt {

inline constexpr size_t kSmallFileBytes = 1 << 20;

// Reads a whole file. The bound is for a device such as /dev/zero, which never ends. kIo says why
// there is no text, without the path: the file cannot be read, or has more than `max_bytes` bytes.
Result<std::string> read_small_file(const std::string& path, size_t max_bytes = kSmallFileBytes);

}  // namespace rt
