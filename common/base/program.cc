#include "common/base/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

namespace rt {

int why_not_runnable(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return EACCES;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

std::string find_program(const std::string& name, const std::string& directories) {
  std::istringstream all(directories);
  for (std::string directory; std::getline(all, directory, ':');) {
    std::string path = (directory.empty() ? "." : directory) + "/" + name;
    if (why_not_runnable(path) == 0) return path;
  }
  return "";
}

}  // namespace rt
