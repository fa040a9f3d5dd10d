// Loads the shared libraries of a job's code search path; their RAY_REMOTE functions register
// themselves.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

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
  void load_library(const std::string& path);

  mutable std::mutex mutex_;
  std::set<std::string> searched_, loaded_;
  std::vector<std::string> problems_;
};

}  // namespace ray::internal
