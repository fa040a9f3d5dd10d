// Ends processes, identified by id and start time, and finds the programs of the daemons.
#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "launch/node/internal.h"
#include "launch/node/launch.h"
#include "launch/node/spawn.h"
#include "launch/node/starter_line.h"

namespace rt::launch {
namespace {

namespace fs = std::filesystem;

// A process that is being ended. Its pidfd is opened before its start time is compared, so that
// signals can reach no other process.
struct Target {
  const StartedProcess* process;
  Fd pidfd;
};

// Returns the processes that live. Reaps those that have ended and were children of this process.
std::vector<Target> alive(const std::vector<const StartedProcess*>& processes) {
  std::vector<Target> targets;
  for (const auto* process : processes) {
    if (process->pid <= 0) continue;
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process->pid, 0)));
    if (!pidfd.valid() || process->start_time == 0 ||
        unreaped_start_time(process->pid) != process->start_time)
      continue;
    // A pidfd becomes readable once the last thread has ended.
    pollfd ended{pidfd.get(), POLLIN, 0};
    if (poll(&ended, 1, 0) == 1) {
      waitpid(process->pid, nullptr, WNOHANG);
    } else {
      targets.push_back({process, std::move(pidfd)});
    }
  }
  return targets;
}

void send(const std::vector<Target>& targets, int signal) {
  for (const auto& target : targets)
    syscall(SYS_pidfd_send_signal, target.pidfd.get(), signal, nullptr, 0);
}

// Removes the targets that have ended (and reaps children of this process) until none is left or
// the time is up.
void wait_for_end(std::vector<Target>& targets, int64_t timeout_us) {
  int64_t deadline_us = steady_now_us() + timeout_us;
  for (;;) {
    std::vector<pollfd> polled;
    for (const auto& target : targets) polled.push_back({target.pidfd.get(), POLLIN, 0});
    int64_t left_ms = std::max<int64_t>(0, (deadline_us - steady_now_us() + 999) / 1000);
    poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left_ms, 1'000'000)));
    size_t index = 0;
    std::erase_if(targets, [&](const Target& target) {
      if (polled[index++].revents == 0) return false;
      waitpid(target.process->pid, nullptr, WNOHANG);
      return true;
    });
    if (targets.empty() || left_ms == 0) return;
  }
}

// Takes the targets with this name out of `targets`; with an empty name, all of them.
std::vector<Target> take(std::vector<Target>& targets, std::string_view name) {
  std::vector<Target> taken, others;
  for (Target& target : targets)
    (name.empty() || target.process->name == name ? taken : others).push_back(std::move(target));
  targets = std::move(others);
  return taken;
}

// Sends SIGTERM in turns and waits for the ends. Returns those that live at the deadline.
std::vector<Target> end_in_turns(std::vector<Target> targets, int64_t deadline_us) {
  std::vector<Target> late;
  for (std::string_view name : {kStarter, "ray-node-manager", "ray-object-store", ""}) {
    std::vector<Target> turn = take(targets, name);
    if (turn.empty()) continue;
    send(turn, SIGTERM);
    // A process that hangs must leave time for those that are asked after it.
    if (!targets.empty()) wait_for_end(turn, (deadline_us - steady_now_us()) / 2);
    std::move(turn.begin(), turn.end(), std::back_inserter(late));
  }
  if (!late.empty()) wait_for_end(late, deadline_us - steady_now_us());
  return late;
}

// Returns the directory of the binding or C++ library that contains this code. In a program
// dli_fname is argv[0], of which only an absolute path is used; else the result is empty.
std::string directory_of_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&directory_of_library), &info) == 0 ||
      info.dli_fname == nullptr || info.dli_fname[0] != '/')
    return {};
  std::error_code error;
  return fs::weakly_canonical(info.dli_fname, error).parent_path();
}

}  // namespace

StopResult stop_processes(const std::vector<StartedProcess>& processes, int64_t grace_us) {
  std::vector<const StartedProcess*> all;
  for (const auto& process : processes) all.push_back(&process);
  std::vector<Target> left = alive(all);
  StopResult result;
  result.found = static_cast<int>(left.size());
  if (grace_us > 0) left = end_in_turns(std::move(left), steady_now_us() + grace_us);
  result.killed = static_cast<int>(left.size());
  send(left, SIGKILL);
  constexpr int64_t kKillTakesUs = 5'000'000;
  if (!left.empty()) wait_for_end(left, kKillTakesUs);
  return result;
}

Result<std::string> daemon_path(const std::string& name) {
  std::vector<std::string> candidates;
  if (std::string given = environment("RAY_BIN"); !given.empty())
    candidates.push_back(given + "/" + name);
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  // A binding lies somewhere below the prefix (build/python/ray, PREFIX/lib/ray-runtime/python/ray)
  // or above the programs (ray/bin in a wheel).
  constexpr int kLevels = 6;
  const fs::path library = directory_of_library();
  fs::path directory = library;
  for (int level = 0; level < kLevels && directory.has_relative_path();
       ++level, directory = directory.parent_path()) {
    candidates.push_back(directory / name);
    candidates.push_back(directory / "bin" / name);
  }
  // Comes last: the directory of a Python interpreter may hold programs of another installation.
  candidates.push_back(own / name);
  for (const auto& candidate : candidates) {
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error))
      return candidate;
  }
  return make_error(Code::kNotFound,
                    fmt::format("the program {} is not next to this one ({}): build it with "
                                "`make`, or set RAY_BIN to its directory",
                                name, (library.empty() ? own : library).string()));
}

}  // namespace rt::launch
