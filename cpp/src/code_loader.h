// Loads the shared libraries of a job's code search path; their RAY_REMOTE functions register
// themselves.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ray::internal {

// Libraries stay loaded as long as the process lives. Threads: any.
class CodeLoader {
 public:
  // Every library at the top level of each directory (or the file itself), once. What goes wrong is
  // kept for describe().
  void load(const std::vector<std::string>& search_path);
  // For "function not found": where was looked, what was loaded, what failed.
  std::string describe() const;

 private:
  void load_library(const std::string& path);

  mutable std::mutex mutex_;
  std::set<std::string> searched_, loaded_;
  std::vector<std::string> problems_;
};

}  // namespace ray::internal
