// prom_metrics_service_discovery.json: what Prometheus scrapes, as a file of its file_sd_configs,
// in the session directory and - for a cluster that is not one program's own - in the temp root
// above it, where it does not change with the session.
//
// Written whole and renamed, in the disk's thread. The one in the temp root goes with the head,
// unless another cluster has taken the place.
#pragma once

#include <string>
#include <vector>

namespace rt::head {

class DiscoveryFile {
 public:
  DiscoveryFile(const std::string& session_dir, bool in_temp_root);
  ~DiscoveryFile();
  DiscoveryFile(const DiscoveryFile&) = delete;

  void write(const std::string& text);

 private:
  static constexpr char kName[] = "prom_metrics_service_discovery.json";
  std::vector<std::string> paths_;  // the session's first
  std::string text_;                // last written
  bool in_trouble_ = false;
};

}  // namespace rt::head
