// The output of a submitted job. The job's processes hold the writing end of a pipe; this object
// reads the other end in the loop, a bounded amount per turn, and appends to the log. The pipe
// lives as long as a process holds it, which is longer than the job if a process has left the
// job's group.
#pragma once

#include <memory>

#include "common/base/fd.h"
#include "common/net/loop.h"
#include "daemons/node_manager/process/rotated_log.h"

namespace rt::node {

class JobOutput {
 public:
  // Takes `log` and returns the pipe's writing end in `writing_end`. The caller passes that end to
  // the job and closes its own copy; the output ends when the last process has closed it.
  static Result<std::unique_ptr<JobOutput>> open(net::Loop& loop, std::unique_ptr<RotatedLog> log,
                                                 Fd* writing_end);

  // Null after drop_log().
  const RotatedLog* log() const { return log_.get(); }
  // Moves everything that the pipe holds at this moment into the log.
  void drain();
  bool ended() const { return !pipe_.valid(); }
  // Discards all further output. The pipe is still read, so that processes which still write are
  // neither blocked nor killed by SIGPIPE.
  void drop_log() { log_.reset(); }

 private:
  JobOutput(std::unique_ptr<RotatedLog> log, int pipe) : log_(std::move(log)), pipe_(pipe) {}
  // Returns the number of bytes read; 0 at the end of the pipe or if it is empty.
  size_t read_some(size_t most);

  std::unique_ptr<RotatedLog> log_;
  Fd pipe_;
  std::unique_ptr<net::FdWatch> watch_;
};

}  // namespace rt::node
