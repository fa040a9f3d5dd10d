// Whether the head's files take what is written to them, judged by the last write to each. Only
// the head's thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace rt::head {

class StorageHealth {
 public:
  enum class File { kState, kHistory };

  // Records the outcome of a write. Returns true when failure() changed.
  bool wrote(File file, const Status& outcome);
  // Returns "storage is failing: " with file, cause and remedy, the state's failure before the
  // history's, or "" when both files take writes.
  std::string failure() const;
  bool failing(File file) const { return !errors_[static_cast<size_t>(file)].empty(); }
  int64_t failures() const { return failures_; }

 private:
  // The error of the last write to each file; empty after success.
  std::array<std::string, 2> errors_;
  int64_t failures_ = 0;
};

}  // namespace rt::head
