// Follows the log files of this node's workers and hands on new lines in batches. Sleeps while
// nobody writes (inotify; a poll where that is not to be had). What a reader far behind would need
// is bounded: a file is read in pieces.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "common/config/settings.h"
#include "common/net/loop.h"
#include "daemons/node_manager/process/log_lines.h"

namespace rt::node {

class LogMonitor {
 public:
  // Called from the loop with at least one entry; job, pid, stream, name and lines are filled.
  using Publish = std::function<void(const proto::HeadEvent&)>;

  LogMonitor(net::Loop& loop, const Settings& settings, const std::string& directory,
             Publish publish);
  ~LogMonitor();

  void add(const WorkerId& worker, int pid, const std::string& out_path,
           const std::string& err_path);
  void set_job(const WorkerId& worker, const std::string& job_id);
  // The process ended: its last lines are read now.
  void remove(const WorkerId& worker);

 private:
  struct File {
    File(size_t max_line) : reader(max_line) {}
    std::string path;
    WorkerId worker;
    int pid = 0;
    bool is_stderr = false;
    int fd = -1;
    int64_t offset = 0;
    LogLineReader reader;
  };

  void on_inotify();
  void schedule(int64_t delay_us);
  void flush();
  // True when there may be more.
  bool read_some(File& file, proto::HeadEvent* event);
  // The worker has renamed the file at its end and goes on in a new one, which is read next.
  bool follow_rotation(File& file);
  void fill(const File& file, std::vector<proto::LogLines>& lines, proto::HeadEvent* event);
  void publish(proto::HeadEvent& event);

  net::Loop& loop_;
  const Settings& settings_;
  Publish publish_;
  std::string directory_;
  std::map<std::string, File> files_;  // by name within the directory
  std::set<std::string> dirty_;
  std::set<std::string> partial_;  // with a line that was not complete when they were read last
  int inotify_ = -1;
  std::unique_ptr<net::FdWatch> watch_;
  net::Loop::TimerId timer_ = 0;
};

}  // namespace rt::node
