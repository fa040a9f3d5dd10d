#include "daemons/head/service/discovery_file.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/log.h"

namespace rt::head {
namespace {

bool replace(const std::string& path, const std::string& text) {
  std::string beside = path + "." + std::to_string(::getpid());
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (file.fail()) return false;
  }
  return std::rename(beside.c_str(), path.c_str()) == 0;
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
  if (!written && !in_trouble_) RT_WARN("{} cannot be written: Prometheus does not learn of nodes that come and go", paths_.back());
  in_trouble_ = !written;
}

}  // namespace rt::head
