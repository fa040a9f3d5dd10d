// The position of a reader in a log, as text. Another reader, also in another process, goes on from
// there.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace rt::state {

// The HTTP header of answers of /api/v0/logs/piece.
inline constexpr char kLogPositionHeader[] = "X-Ray-Log-Position";

struct LogPosition {
  std::string node_id, name;  // The node's id in hex, and the name of the file.
  uint64_t inode = 0;
  int64_t offset = 0;  // Where the next byte is.
  // When the lines of a task are read: whether the next line belongs to the task. Otherwise:
  // whether the next byte is in the middle of a line.
  bool inside = false;

  // Returns "NODE INODE OFFSET INSIDE NAME-IN-HEX". Clients must treat the text as opaque.
  std::string text() const;
  // Returns kInvalid for anything that text() does not produce.
  static Result<LogPosition> parse(const std::string& text);
};

}  // namespace rt::state
