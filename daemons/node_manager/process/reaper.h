// Collects the exit statuses of this process's children, including orphans that it inherits as a
// subreaper. There can be only one per process, because it waits for every child, and nothing else
// in the process may do so (waitpid, system, popen). The constructor blocks SIGCHLD in the calling
// thread, so construct it before other threads start: they inherit the mask. All calls come from
// the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "common/net/loop.h"

namespace rt::node {

class Reaper {
 public:
  // `status` is as wait() returns it.
  using OnExit = std::function<void(int status)>;

  explicit Reaper(net::Loop& loop);
  ~Reaper();

  // Calls `on_exit` once, from the loop, when the process has ended. To be called before control
  // returns to the loop after the spawn, or the exit may be missed. A second call for the same
  // process replaces the first.
  void watch(int pid, OnExit on_exit);
  // The process counts as an orphan from then on.
  void forget(int pid) { watched_.erase(pid); }
  // Called with every child that ends without being watched: orphans that this process inherited,
  // such as the workers of a fork server that died.
  void set_orphan_handler(std::function<void(int pid, int status)> handler) {
    on_orphan_ = std::move(handler);
  }
  // Called with each ended child before it is reaped. Until then the operating system reuses
  // neither its process id nor that of its group.
  void set_before_reap(std::function<void(int pid)> handler) { before_reap_ = std::move(handler); }

 private:
  void collect();

  net::Loop& loop_;
  int signal_fd_ = -1;
  std::unique_ptr<net::FdWatch> watch_;
  std::unordered_map<int, OnExit> watched_;
  std::function<void(int, int)> on_orphan_;
  std::function<void(int)> before_reap_;
};

}  // namespace rt::node
