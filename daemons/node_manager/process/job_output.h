// What the processes of a submitted job write: they hold one end of a pipe, this reads the other
// and keeps the log. Read from the loop, a bounded piece a turn. It lasts as long as anybody holds
// the pipe, longer than the job where a process has left its group.
#pragma once

#include <memory>

#include "common/base/fd.h"
#include "common/net/loop.h"
#include "daemons/node_manager/process/rotated_log.h"

namespace rt::node {

class JobOutput {
 public:
  // `writing_end`: for the job's processes alone; once the last of them has closed it, the output
  // has ended.
  static Result<std::unique_ptr<JobOutput>> open(net::Loop& loop, std::unique_ptr<RotatedLog> log,
                                                 Fd* writing_end);

  // Null once it is dropped.
  const RotatedLog* log() const { return log_.get(); }
  // What has been written up to now is in the log.
  void drain();
  bool ended() const { return !pipe_.valid(); }
  // Who still writes is neither blocked nor killed; what it writes goes nowhere.
  void drop_log() { log_.reset(); }

 private:
  JobOutput(std::unique_ptr<RotatedLog> log, int pipe) : log_(std::move(log)), pipe_(pipe) {}
  // How much came.
  size_t read_some(size_t most);

  std::unique_ptr<RotatedLog> log_;
  Fd pipe_;
  std::unique_ptr<net::FdWatch> watch_;
};

}  // namespace rt::node
