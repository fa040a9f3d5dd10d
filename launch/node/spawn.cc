#include "launch/node/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/environment.h"
#include "common/base/proc.h"
#include "common/base/rng.h"

namespace rt::launch {
namespace {

// How long to look for another failure after a process has exited with code 0; see wait().
constexpr int64_t kFollowedUs = 2'000'000;
// Inherited descriptors are first copied to numbers above those used in the child, so that no
// dup2() overwrites the source of a later one.
constexpr int kStagingFd = 64;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// posix_spawn's two parameter objects, with destructors.
struct Actions {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  Actions(const Actions&) = delete;
};

// The child gets a session of its own, so that Ctrl-C at the terminal concerns only its starter,
// default signal handlers, and no blocked signals.
void set_attributes(Actions& actions) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&actions.attributes, &all);
  posix_spawnattr_setsigmask(&actions.attributes, &none);
  posix_spawnattr_setflags(&actions.attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

Fd open_pidfd(int pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

// Receives one message. Returns the process id of its sender if it says READY=1, else 0.
int receive_ready(int fd) {
  char text[1024];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec part{text, sizeof(text)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n <= 0 || ("\n" + std::string(text, static_cast<size_t>(n)) + "\n").find("\nREADY=1\n") ==
                    std::string::npos)
    return 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
    return sender.pid;
  }
  return 0;
}

}  // namespace

Result<StartedProcess> spawn(const SpawnRequest& request) {
  Actions actions;
  set_attributes(actions);
  posix_spawn_file_actions_addopen(&actions.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions.files, 1, request.output_file.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions.files, 1, 2);
  std::vector<Fd> staged;
  int number = kFirstInheritedFd;
  for (int fd : request.inherit) {
    staged.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, kStagingFd));
    if (!staged.back().valid()) {
      const char* remedy =
          errno == EINVAL || errno == EMFILE
              ? " (too few descriptors are allowed: raise the limit, see `ulimit -n`)"
              : "";
      return errno_error(fmt::format("cannot pass a descriptor to {}{}", request.name, remedy),
                         errno);
    }
    posix_spawn_file_actions_adddup2(&actions.files, staged.back().get(), number++);
  }
  // Anything else that is open without close-on-exec (say, a test runner's pipes) would otherwise
  // stay open as long as the daemon lives.
  posix_spawn_file_actions_addclosefrom_np(&actions.files, number);
  std::vector<std::string> arguments = request.arguments;
  arguments.insert(arguments.begin(), request.executable);
  std::vector<std::string> variables = merged_environment(request.environment);
  pid_t pid = 0;
  int error = posix_spawn(&pid, request.executable.c_str(), &actions.files, &actions.attributes,
                          pointers(arguments).data(), pointers(variables).data());
  if (error != 0)
    return errno_error(fmt::format("cannot start {} ({})", request.name, request.executable),
                       error);
  return StartedProcess{request.name, pid, unreaped_start_time(pid), std::move(arguments)};
}

uint64_t process_start_time(int pid) {
  const auto stat = proc_stat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X' ? stat->start_ticks : 0;
}

uint64_t unreaped_start_time(int pid) {
  const auto stat = proc_stat(pid);
  return stat ? stat->start_ticks : 0;
}

std::string reap_and_describe(int pid) {
  int status = 0;
  pid_t reaped = waitpid(pid, &status, WNOHANG);
  if (reaped == 0) return {};
  if (reaped < 0) return process_start_time(pid) == 0 ? "ended" : "";
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

Result<ReadySocket> ReadySocket::create() {
  ReadySocket ready;
  ready.fd_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!ready.fd_.valid()) return errno_error("cannot make a socket", errno);
  // In the abstract namespace no path can be too long, and there is nothing to remove.
  ready.name_ = fmt::format("@ray-ready-{}-{:016x}", getpid(), Rng::from_system().next());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, ready.name_.data() + 1, ready.name_.size() - 1);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + ready.name_.size());
  int on = 1;
  setsockopt(ready.fd_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  if (bind(ready.fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
    return errno_error("cannot bind a notification socket", errno);
  return ready;
}

Status ReadySocket::wait(const std::vector<StartedProcess>& processes, int64_t timeout_us,
                         std::string* culprit) {
  int64_t deadline_us = steady_now_us() + timeout_us;
  std::vector<StartedProcess> pending = processes;
  std::vector<Fd> watches;
  std::vector<pollfd> polled = {{fd_.get(), POLLIN, 0}};
  for (const auto& process : processes) {
    watches.push_back(open_pidfd(process.pid));
    // -1 when somebody has reaped the process: poll() ignores it, reap_and_describe() does not.
    polled.push_back({watches.back().get(), POLLIN, 0});
  }
  // Describes the end of a process that exited with code 0. Most likely it ended because another
  // process failed, which is about to end, too, and has the cause.
  std::string followed;
  int64_t followed_until_us = 0;
  while (!pending.empty()) {
    int64_t left_us = deadline_us - steady_now_us();
    if (!followed.empty() && steady_now_us() > followed_until_us)
      return make_error(Code::kUnavailable,
                        fmt::format("{} {} while it started", *culprit, followed));
    if (left_us <= 0) {
      *culprit = pending.front().name;
      return make_error(Code::kTimeout, fmt::format("{} was not ready after {} s",
                                                    pending.front().name, timeout_us / 1'000'000));
    }
    // Turns are bounded, so that a process without a pidfd is looked at now and then.
    poll(polled.data(), polled.size(),
         static_cast<int>(std::min<int64_t>(left_us / 1000 + 1, 200)));
    while (polled[0].revents != 0) {
      int sender = receive_ready(fd_.get());
      std::erase_if(pending, [&](const auto& process) { return process.pid == sender; });
      pollfd more{fd_.get(), POLLIN, 0};
      if (poll(&more, 1, 0) <= 0) break;
    }
    for (size_t i = 0; i < processes.size(); ++i) {
      const StartedProcess& process = processes[i];
      if (!followed.empty() && process.name == *culprit) continue;
      std::string end = reap_and_describe(process.pid);
      if (end.empty()) continue;
      *culprit = process.name;
      if (end == "exited with code 0" && followed.empty()) {
        followed = end;
        followed_until_us = steady_now_us() + kFollowedUs;
        // The descriptor would stay readable.
        polled[i + 1].fd = -1;
        continue;
      }
      return make_error(Code::kUnavailable,
                        fmt::format("{} {} while it started", process.name, end));
    }
  }
  return {};
}

}  // namespace rt::launch
