// Loads the shared libraries of a job's code search path; their RAY_REMOTE functions register
// themselves.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"

namespace ray::internal {

// Libraries stay loaded as long as the process lives. Any thread may call.
class CodeLoader {
 public:
  // Loads every library at the top level of each directory (or the file itself), once. Failures
  // are kept for describe().
  void load(const std::vector<std::string>& search_path);
  // Text for the error "function not found": the search path, the libraries loaded, the failures.
  std::string describe() const;

 private:
  void load_library(const std::string& path) REQUIRES(mutex_);

  mutable rt::Mutex mutex_;
  std::set<std::string> searched_ GUARDED_BY(mutex_), loaded_ GUARDED_BY(mutex_);
  std::vector<std::string> problems_ GUARDED_BY(mutex_);
};

}  // namespace ray::internal
