#include "daemons/head/service/discovery_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/fd.h"
#include "common/base/log.h"

namespace rt::head {
namespace {

// Prometheus may run as another user.
constexpr mode_t kMode = 0644;

// Replaces the file and returns 0, or the errno of what failed.
int replace(const std::string& path, const std::string& text) {
  // Everybody can write to the temp root: under a predictable name another user could have placed
  // a link to one of this user's files.
  std::string beside = path + ".XXXXXX";
  Fd file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file.valid()) return errno;
  // A write that is cut short sets no errno.
  errno = ENOSPC;
  if (::fchmod(file.get(), kMode) == 0 &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      std::rename(beside.c_str(), path.c_str()) == 0)
    return 0;
  int failure = errno;
  ::unlink(beside.c_str());
  return failure;
}

}  // namespace

DiscoveryFile::DiscoveryFile(const std::string& session_dir, bool in_temp_root) {
  paths_.push_back(session_dir + "/" + kName);
  std::filesystem::path above = std::filesystem::path(session_dir).parent_path();
  if (in_temp_root && !above.empty()) paths_.push_back((above / kName).string());
}

DiscoveryFile::~DiscoveryFile() {
  for (size_t i = 1; i < paths_.size(); ++i) {
    std::ostringstream now;
    now << std::ifstream(paths_[i], std::ios::binary).rdbuf();
    if (!text_.empty() && now.str() == text_) std::remove(paths_[i].c_str());
  }
}

void DiscoveryFile::write(const std::string& text) {
  if (text == text_) return;
  text_ = text;
  bool written = true;
  for (const std::string& path : paths_) {
    int failure = replace(path, text);
    if (failure == 0) continue;
    written = false;
    if (!in_trouble_)
      RT_WARN("{} cannot be written: {}: Prometheus does not learn of nodes that come and go", path,
              std::strerror(failure));
  }
  in_trouble_ = !written;
}

}  // namespace rt::head
