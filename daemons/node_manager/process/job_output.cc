#include "daemons/node_manager/process/job_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rt::node {
namespace {

constexpr size_t kOutputReadBytes = 256 * 1024;
constexpr int kPipeBytes = 1 << 20;  // large enough that bursts of output rarely block the job

size_t waiting_in(int pipe) {
  int count = 0;
  return ::ioctl(pipe, FIONREAD, &count) == 0 && count > 0 ? static_cast<size_t>(count) : 0;
}

}  // namespace

Result<std::unique_ptr<JobOutput>> JobOutput::open(net::Loop& loop, std::unique_ptr<RotatedLog> log,
                                                   Fd* writing_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return errno_error("cannot make a pipe for a job's output", errno);
  writing_end->reset(ends[1]);
  std::unique_ptr<JobOutput> output(new JobOutput(std::move(log), ends[0]));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  // The kernel limits the pipe pages per user; a pipe beyond that keeps the default of 64 KiB.
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  output->watch_ =
      loop.watch_readable(ends[0], [self = output.get()] { self->read_some(kOutputReadBytes); });
  return output;
}

size_t JobOutput::read_some(size_t most) {
  std::string data(std::clamp<size_t>(waiting_in(pipe_.get()), 1, most), 0);
  ssize_t n = ::read(pipe_.get(), data.data(), data.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n <= 0) {
    watch_.reset();
    pipe_.reset();
    if (log_) log_->close();
    return 0;
  }
  if (log_) log_->append(std::string_view(data).substr(0, static_cast<size_t>(n)));
  return static_cast<size_t>(n);
}

void JobOutput::drain() {
  if (!pipe_.valid()) return;
  // The amount is fixed first: a process outside the job's group may go on writing forever.
  for (size_t left = waiting_in(pipe_.get()); left > 0 && pipe_.valid();) {
    size_t n = read_some(std::min(left, kOutputReadBytes));
    if (n == 0) return;
    left -= n;
  }
}

}  // namespace rt::node
