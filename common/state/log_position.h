// Where the reading of a log is, as text for another one that goes on there.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace rt::state {

// Of an answer of /api/v0/logs/piece.
inline constexpr char kLogPositionHeader[] = "X-Ray-Log-Position";

struct LogPosition {
  std::string node_id, name;  // hex; of the file
  uint64_t inode = 0;
  int64_t offset = 0;
  bool inside =
      false;  // of a task: its lines come next; else: the next byte is in the middle of a line

  // For nobody to take apart: "NODE INODE OFFSET INSIDE NAME-IN-HEX".
  std::string text() const;
  // kInvalid: no text() of a position.
  static Result<LogPosition> parse(const std::string& text);
};

}  // namespace rt::state
