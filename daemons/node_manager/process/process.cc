#include "daemons/node_manager/process/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/proc.h"
#include "common/base/thread.h"
#include "common/base/utf8.h"

namespace rt::node {
namespace {

// The child's actions, prepared before the fork: afterwards only async-signal-safe calls are
// allowed.
struct ChildPlan {
  std::vector<char*> argv, envp;
  std::string out_prefix, out_suffix, err_prefix, err_suffix;
  bool same_file = false, out_has_pid = false, err_has_pid = false;
  const char* cwd = nullptr;
  int inherit_fd = -1, output_fd = -1;
  bool new_session = false, outlives_parent = false, unprotect = false;
  pid_t parent = 0;
  // The ends of a pipe over which the parent says that the program may be executed; -1: at once.
  int may_execute = -1, says_execute = -1;
};

void split_path(const std::string& path, std::string& prefix, std::string& suffix, bool& has_pid) {
  size_t at = path.find("%p");
  has_pid = at != std::string::npos;
  prefix = path.substr(0, at);
  suffix = has_pid ? path.substr(at + 2) : "";
}

int open_output(const std::string& prefix, const std::string& suffix, bool has_pid) {
  if (prefix.empty()) return ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  char path[4096];
  char digits[16];
  int count = 0;
  if (has_pid) {
    for (pid_t pid = ::getpid(); pid > 0; pid /= 10)
      digits[count++] = static_cast<char>('0' + pid % 10);
  }
  if (prefix.size() + suffix.size() + static_cast<size_t>(count) + 1 > sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  char* at = path;
  std::memcpy(at, prefix.data(), prefix.size());
  at += prefix.size();
  while (count > 0) *at++ = digits[--count];
  std::memcpy(at, suffix.data(), suffix.size());
  at[suffix.size()] = 0;
  return ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// A service manager may protect this process from the kernel's out-of-memory killer
// (OOMScoreAdjust=). Children must not inherit that protection.
bool is_protected() {
  char text[16] = "";
  int fd = ::open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool read = ::read(fd, text, sizeof text - 1) > 0;
  ::close(fd);
  return read && text[0] == '-';
}

[[noreturn]] void fail_in_child(int report_fd, int stage) {
  int report[2] = {errno, stage};
  [[maybe_unused]] ssize_t n = ::write(report_fd, report, sizeof report);
  ::_exit(127);
}

constexpr const char* kStages[] = {"redirect its output", "change to its directory", "execute"};

[[noreturn]] void run_child(const ChildPlan& plan, int report_fd) {
  if (!plan.outlives_parent) {
    // The parent may have died before the signal was requested; the check of getppid() finds that.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);
  }
  if (plan.new_session) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
  }
  if (plan.unprotect) {
    int adjust = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    [[maybe_unused]] ssize_t n = ::write(adjust, "0", 1);
    ::close(adjust);
  }
  for (int s = 1; s < NSIG; ++s) {
    if (s != SIGKILL && s != SIGSTOP) ::signal(s, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int out = plan.output_fd >= 0 ? plan.output_fd
                                : open_output(plan.out_prefix, plan.out_suffix, plan.out_has_pid);
  int err = plan.same_file ? out : open_output(plan.err_prefix, plan.err_suffix, plan.err_has_pid);
  if (in < 0 || out < 0 || err < 0) fail_in_child(report_fd, 0);
  // Move the descriptors out of the way of numbers 0 to 3, which are assigned below.
  int report = ::fcntl(report_fd, F_DUPFD_CLOEXEC, 10);
  // Only the parent holds the other end, so that its end is seen.
  if (plan.says_execute >= 0) ::close(plan.says_execute);
  int may_execute = plan.may_execute < 0 ? -1 : ::fcntl(plan.may_execute, F_DUPFD_CLOEXEC, 10);
  int inherit = plan.inherit_fd < 0 ? -1 : ::fcntl(plan.inherit_fd, F_DUPFD_CLOEXEC, 10);
  in = ::fcntl(in, F_DUPFD_CLOEXEC, 10);
  out = ::fcntl(out, F_DUPFD_CLOEXEC, 10);
  err = ::fcntl(err, F_DUPFD_CLOEXEC, 10);
  if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) fail_in_child(report, 0);
  if (inherit >= 0 && ::dup2(inherit, 3) < 0) fail_in_child(report, 0);
  // Close everything else at the exec: listening sockets and lifeline descriptors of this process
  // must not live on in another one.
  ::syscall(SYS_close_range, inherit >= 0 ? 4 : 3, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
  if (plan.cwd && ::chdir(plan.cwd) != 0) fail_in_child(report, 1);
  if (may_execute >= 0) {
    char said;
    ssize_t n;
    do {
      n = ::read(may_execute, &said, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1) ::_exit(127);
  }
  ::execvpe(plan.argv[0], plan.argv.data(), plan.envp.data());
  fail_in_child(report, 2);
}

// Leaves out the rest of a character of UTF-8 whose beginning was cut off.
std::string_view from_whole_character(std::string_view text) {
  size_t rest = 0;
  while (rest < 3 && rest < text.size() && (text[rest] & 0xc0) == 0x80) ++rest;
  return text.substr(rest);
}

}  // namespace

uint64_t process_start_time(int pid) {
  const auto stat = proc_stat(pid);
  return stat ? stat->start_ticks : 0;
}

bool process_is_ending(int pid) {
  // PF_EXITING is set before a process closes any descriptor, and stays set in a zombie.
  constexpr uint64_t kExiting = 0x4;
  const auto stat = proc_stat(pid);
  return !stat || (stat->flags & kExiting);
}

Result<ProcessId> spawn_process(const SpawnOptions& options) {
  RT_CHECK(!options.argv.empty());
  ChildPlan plan;
  std::vector<std::string> env = merged_environment({options.env.begin(), options.env.end()});
  for (const std::string& arg : options.argv) plan.argv.push_back(const_cast<char*>(arg.c_str()));
  plan.argv.push_back(nullptr);
  for (const std::string& entry : env) plan.envp.push_back(const_cast<char*>(entry.c_str()));
  plan.envp.push_back(nullptr);
  split_path(options.stdout_path, plan.out_prefix, plan.out_suffix, plan.out_has_pid);
  split_path(options.stderr_path, plan.err_prefix, plan.err_suffix, plan.err_has_pid);
  plan.same_file = options.output_fd >= 0 || options.stdout_path == options.stderr_path;
  plan.cwd = options.cwd.empty() ? nullptr : options.cwd.c_str();
  plan.inherit_fd = options.inherit_fd;
  plan.output_fd = options.output_fd;
  plan.new_session = options.new_session;
  plan.outlives_parent = options.outlives_parent;
  plan.parent = ::getpid();
  plan.unprotect = is_protected();

  int report[2], execute[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return errno_error("cannot start " + options.argv[0], errno);
  Fd report_end(report[0]), child_report_end(report[1]), child_execute_end, execute_end;
  if (options.before_exec) {
    if (::pipe2(execute, O_CLOEXEC) != 0)
      return errno_error("cannot start " + options.argv[0], errno);
    child_execute_end = Fd(plan.may_execute = execute[0]);
    execute_end = Fd(plan.says_execute = execute[1]);
  }
  pid_t pid;
  int fork_errno;
  {
    const SignalsBlocked blocked;  // no signal handler of this process runs in the child
    pid = ::fork();
    if (pid == 0) run_child(plan, child_report_end.get());
    fork_errno = errno;
  }
  child_report_end.reset();
  if (pid < 0) return errno_error("cannot start " + options.argv[0], fork_errno);
  Status started = options.before_exec ? options.before_exec(pid) : Status();
  // This process holds the reading end until here, so that a child that is gone raises no SIGPIPE.
  ssize_t n = started && execute_end.valid() ? ::write(execute_end.get(), "", 1) : 0;
  execute_end.reset();
  int failure[2];
  do {
    n = ::read(report_end.get(), failure, sizeof failure);  // end of file after a successful exec
  } while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof failure))
    started = errno_error(
        fmt::format("cannot {} {}", kStages[std::clamp(failure[1], 0, 2)], options.argv[0]),
        failure[0]);
  if (started) return ProcessId{pid, process_start_time(pid)};
  int status;
  ::waitpid(pid, &status, 0);
  return started.error();
}

bool signal_process(const ProcessId& process, int signal) {
  if (process.pid <= 1) return false;
  // The descriptor fixes which process is signalled; the start time, read afterwards, tells
  // whether that is the one that was meant.
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  if (fd < 0 && errno == ENOSYS) {
    return (process.start_time == 0 || process_start_time(process.pid) == process.start_time) &&
           ::kill(process.pid, signal) == 0;
  }
  if (fd < 0) return false;
  bool same = process.start_time == 0 || process_start_time(process.pid) == process.start_time;
  bool sent = same && ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) == 0;
  ::close(fd);
  return sent;
}

void signal_group(const ProcessId& leader, int signal) {
  if (leader.pid > 1) ::kill(-leader.pid, signal);
}

bool group_exists(const ProcessId& leader) {
  return leader.pid > 1 && (::kill(-leader.pid, 0) == 0 || errno == EPERM);
}

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::string file_tail(const std::string& path, int max_lines, size_t max_bytes) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  off_t size = ::lseek(fd, 0, SEEK_END);
  off_t from = std::max<off_t>(0, size - static_cast<off_t>(max_bytes));
  std::string text(static_cast<size_t>(std::max<off_t>(0, size - from)), 0);
  ssize_t n = text.empty() ? 0 : ::pread(fd, text.data(), text.size(), from);
  ::close(fd);
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, n)));
  return text_tail(from > 0 ? from_whole_character(text) : std::string_view(text), max_lines);
}

std::string text_tail(std::string_view text, int max_lines) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = text; !rest.empty();) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (line.starts_with(":job_id:") || line.starts_with(":task_name:") ||
        line.starts_with(":task_id:") || line.starts_with(":actor_name:"))
      continue;
    lines.push_back(line);
  }
  size_t first = lines.size() > static_cast<size_t>(max_lines)
                     ? lines.size() - static_cast<size_t>(max_lines)
                     : 0;
  std::string tail;
  for (size_t i = first; i < lines.size(); ++i) tail.append(lines[i]).push_back('\n');
  return valid_utf8(tail);
}

}  // namespace rt::node
