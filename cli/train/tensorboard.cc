#include "cli/train/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cli/terminal/ending_signals.h"
#include "cli/terminal/print.h"
#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/program.h"
#include "common/base/utf8.h"

namespace rt::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kPython[] = "python3";
// TensorBoard ends within a second of SIGTERM.
constexpr int kGraceMs = 5000;
constexpr size_t kMostLineBytes = 64 << 10;
// This program prints the distributions that are missing.
constexpr char kCheck[] =
    "import importlib.util as u\n"
    "for module, name in (('tensorboard', 'tensorboard'), ('torch_tb_profiler', "
    "'torch-tb-profiler')):\n"
    "    if u.find_spec(module) is None: print(name)\n";

struct Child {
  pid_t pid = 0;
  Fd output;
};

// Starts a program whose descriptor `which` (1 or 2) is the pipe `output`. It gets SIGTERM when
// this process ends.
Result<Child> spawn_piped(std::vector<std::string> words, int which) {
  int ends[2], broken[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  Child child;
  child.output.reset(ends[0]);
  Fd written(ends[1]);
  if (::pipe2(broken, O_CLOEXEC) != 0) return errno_error("cannot make a pipe", errno);
  Fd why(broken[0]), says(broken[1]);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  child.pid = ::fork();
  if (child.pid < 0) return errno_error("cannot start a process", errno);
  if (child.pid == 0) {
    const sigset_t set = ending_signals();
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) _exit(1);
    ::dup2(written.get(), which);
    ::execvp(argv[0], argv.data());
    const int failed = errno;
    (void)!::write(says.get(), &failed, sizeof failed);
    _exit(127);
  }
  says.reset();
  int failed = 0;
  if (::read(why.get(), &failed, sizeof failed) == sizeof failed) {
    ::waitpid(child.pid, nullptr, 0);
    return errno_error("cannot start " + words[0], failed);
  }
  return child;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

// The interpreter that the first line of a script names; empty if it is none of Python.
std::string interpreter_of(const std::string& script) {
  std::string line;
  std::ifstream file(script);
  std::getline(file, line);
  if (!line.starts_with("#!")) return "";
  line.erase(0, line.find_first_not_of("#! "));
  line = line.substr(0, line.find(' '));
  return fs::path(line).filename().string().starts_with("python") ? line : "";
}

// Passes on the lines that TensorBoard writes, but for the one that says where it is.
class Output {
 public:
  explicit Output(Fd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  const std::string& url() const { return url_; }
  // Returns the last line that was not empty.
  const std::string& last() const { return last_; }

  // Returns false at the end of the output.
  bool read() {
    char buffer[4096];
    const ssize_t n = ::read(fd_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) {
      take_line();
      return false;
    }
    for (const char c : std::string_view(buffer, static_cast<size_t>(n))) {
      if (c == '\n' || line_.size() >= kMostLineBytes) take_line();
      if (c != '\n') line_ += c;
    }
    return true;
  }

 private:
  void take_line() {
    if (std::string found = tensorboard_url(line_); !found.empty()) {
      url_ = std::move(found);
    } else if (!line_.empty()) {
      last_ = printable(line_);
      print(stderr, "{}\n", last_);
    }
    line_.clear();
  }

  Fd fd_;
  std::string line_, last_, url_;
};

// Ends a child that may have ended already.
void end_child(pid_t pid, const Fd& ended) {
  ::kill(pid, SIGTERM);
  pollfd polled{ended.get(), POLLIN, 0};
  if (::poll(&polled, 1, kGraceMs) == 0) ::kill(pid, SIGKILL);
  wait_for(pid);
}

}  // namespace

std::string tensorboard_url(const std::string& line) {
  // "TensorBoard 2.15.1 at http://localhost:6006/ (Press CTRL+C to quit)"
  const size_t at = line.find(" at http");
  if (!line.starts_with("TensorBoard ") || at == std::string::npos) return "";
  const std::string rest = line.substr(at + 4);
  return rest.substr(0, rest.find(' '));
}

Result<std::string> tensorboard_python(const std::string& wanted) {
  std::string python = wanted;
  if (python.empty()) python = interpreter_of(find_program("tensorboard", environment("PATH")));
  if (python.empty()) python = kPython;
  auto started = spawn_piped({python, "-c", kCheck}, STDOUT_FILENO);
  if (!started)
    return make_error(started.error().code,
                      fmt::format("{} (Debian: apt-get install python3; --python names another "
                                  "interpreter)",
                                  started.error().message));
  Child child = std::move(*started);
  std::string missing;
  char buffer[1024];
  for (ssize_t n;
       (n = ::read(child.output.get(), buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) missing.append(buffer, static_cast<size_t>(n));
  }
  if (wait_for(child.pid) != 0)
    return make_error(Code::kNotFound,
                      fmt::format("{} is no Python interpreter that works: --python names another "
                                  "one",
                                  python));
  if (missing.empty()) return python;
  std::replace(missing.begin(), missing.end(), '\n', ' ');
  missing.pop_back();
  return make_error(Code::kNotFound,
                    fmt::format("{} lacks what shows the profiles: `{} -m pip install {}` installs "
                                "it (in a virtual environment, as Debian has no packages of it), "
                                "or --python names an interpreter that has it",
                                python, python, missing));
}

Status run_tensorboard(const TensorBoard& wanted) {
  const sigset_t set = ending_signals();
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Fd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  std::vector<std::string> words = {wanted.python,      "-u",       "-m",
                                    "tensorboard.main", "--logdir", wanted.logdir};
  if (!wanted.host.empty()) words.insert(words.end(), {"--host", wanted.host});
  if (wanted.port > 0) words.insert(words.end(), {"--port", std::to_string(wanted.port)});
  RT_ASSIGN(Child child, spawn_piped(std::move(words), STDERR_FILENO));
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
  Output output(std::move(child.output));
  int64_t next_ms = 0;  // When `shown` is due.
  pollfd polled[] = {
      {signals.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}, {output.fd(), POLLIN, 0}};
  while (true) {
    const int64_t now_ms = steady_now_us() / 1000;
    if (!output.url().empty() && now_ms >= next_ms) {
      wanted.shown(output.url());
      next_ms = now_ms + wanted.repeat_ms;
    }
    const int64_t wait_ms = output.url().empty() ? -1 : next_ms - now_ms;
    if (::poll(polled, 3, static_cast<int>(wait_ms)) < 0 && errno != EINTR)
      return errno_error("cannot wait for TensorBoard", errno);
    if (polled[2].revents != 0 && !output.read()) polled[2].fd = -1;
    if (polled[0].revents != 0) {
      end_child(child.pid, ended);
      return {};
    }
    // The children of TensorBoard may hold the pipe open after it has ended.
    if (polled[1].revents != 0 && polled[2].revents == 0) break;
  }
  const int status = wait_for(child.pid);
  return make_error(
      Code::kUnavailable,
      fmt::format("TensorBoard {}{}",
                  WIFSIGNALED(status)
                      ? fmt::format("was killed by signal {}", WTERMSIG(status))
                      : fmt::format("ended by itself, with exit code {}", WEXITSTATUS(status)),
                  output.last().empty() ? "" : ": " + output.last()));
}

}  // namespace rt::cli
