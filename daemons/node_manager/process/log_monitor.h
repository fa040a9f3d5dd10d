// Follows the log files of this node's workers and publishes new lines in batches. It sleeps while
// nobody writes (inotify; it polls where inotify is not available). Files are read in pieces, so
// that its memory stays bounded when it is far behind. Threads: the loop's.
#pragma once

#include <functional>
#include <list>
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
  // Called from the loop, or from remove(), with at least one entry of which job, pid, stream,
  // name and lines are filled.
  using Publish = std::function<void(const proto::HeadEvent&)>;

  LogMonitor(net::Loop& loop, const Settings& settings, const std::string& directory,
             Publish publish);
  ~LogMonitor();

  void add(const WorkerId& worker, int pid, const std::string& out_path,
           const std::string& err_path);
  // Sets the job (binary id) of lines that the worker writes before it names a job itself.
  void set_job(const WorkerId& worker, const std::string& job_id);
  // To be called when the process has ended: publishes its last lines at once.
  void remove(const WorkerId& worker);
  // Publishes, without the pause between batches, all that workers have written by now, with the
  // unfinished lines of the job (binary id). Then calls `done`, perhaps before this returns.
  void flush(const std::string& job_id, std::function<void()> done);

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

  // A call of flush() whose files have not been read to their ends.
  struct Flush {
    std::string job_id;
    std::function<void()> done;
    std::set<std::string> files;
  };

  // Marks the files that were written to since the last call.
  void take_changes();
  void schedule(int64_t delay_us);
  void next_batch();
  // Reads files that may have new bytes, each up to a bound; returns the names of those that had.
  std::set<std::string> read_dirty(proto::HeadEvent* event);
  // Ends a batch: publishes it, with the answers to flush(), and plans the next one.
  void end_batch(proto::HeadEvent& event);
  void hand_out_partial(const std::string& name, proto::HeadEvent* event);
  // Returns true if there may be more to read.
  bool read_some(File& file, proto::HeadEvent* event);
  // Returns true if the worker has rotated its log, so that the path names another file. The old
  // file is closed once it has been read to its end.
  bool follow_rotation(File& file);
  void fill(const File& file, std::vector<proto::LogLines>& lines, proto::HeadEvent* event);
  void publish(proto::HeadEvent& event);

  net::Loop& loop_;
  const Settings& settings_;
  Publish publish_;
  std::string directory_;
  std::map<std::string, File> files_;  // by name within the directory
  std::set<std::string> dirty_;        // files that may have new bytes
  std::set<std::string> partial_;      // files that ended in an incomplete line when last read
  std::list<Flush> flushes_;
  int inotify_ = -1;
  std::unique_ptr<net::FdWatch> watch_;
  net::Loop::TimerId timer_ = 0;
};

}  // namespace rt::node
