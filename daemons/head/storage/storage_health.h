// Whether the head's files take what is written to them: one answer, from what became of the last
// write to each.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace rt::head {

class StorageHealth {
 public:
  enum class File { kState, kHistory };

  // What became of a write. True: failure() is another one than before.
  bool wrote(File file, const Status& outcome);
  // "storage is failing: " with file, cause and remedy, the state's before the history's. Empty:
  // both take what is written.
  std::string failure() const;
  bool failing(File file) const { return !errors_[static_cast<size_t>(file)].empty(); }
  int64_t failures() const { return failures_; }

 private:
  std::array<std::string, 2> errors_;  // of the last write to each file; empty: it went well
  int64_t failures_ = 0;
};

}  // namespace rt::head
