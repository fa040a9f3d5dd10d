#include "daemons/head/service/discovery_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/fd.h"
#include "common/base/log.h"

namespace rt::head {
namespace {

// Prometheus may run as another user.
constexpr mode_t kMode = 0644;

bool replace(const std::string& path, const std::string& text) {
  // Everybody can write to the temp root: under a predictable name another user could have placed
  // a link to one of this user's files.
  std::string beside = path + ".XXXXXX";
  Fd file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file.valid()) return false;
  if (::fchmod(file.get(), kMode) == 0 &&
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      std::rename(beside.c_str(), path.c_str()) == 0)
    return true;
  ::unlink(beside.c_str());
  return false;
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
  for (const std::string& path : paths_) written &= replace(path, text);
  if (!written && !in_trouble_)
    RT_WARN("{} cannot be written: Prometheus does not learn of nodes that come and go",
            paths_.back());
  in_trouble_ = !written;
}

}  // namespace rt::head
