// prom_metrics_service_discovery.json: the targets of Prometheus in the format of its
// file_sd_configs. It lies in the session directory and, unless the cluster is private to one
// program, also in the temp root above it, where its path does not change with the session.
//
// write() runs in the disk thread and replaces each file atomically. The destructor removes the
// file in the temp root unless another cluster has replaced it. A file that cannot be written
// costs a log line, nothing else.
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
  std::vector<std::string> paths_;  // The session's path comes first.
  std::string text_;                // The text that was written last.
  bool in_trouble_ = false;
};

}  // namespace rt::head
