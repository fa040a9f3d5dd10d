// Collects the exit statuses of this process's children, including orphans it inherited as
// subreaper. One per process: it waits for every child. SIGCHLD is blocked in the thread that makes
// it, before other threads start.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "common/net/loop.h"

namespace rt::node {

class Reaper {
 public:
  // `status` is wait()'s.
  using OnExit = std::function<void(int status)>;

  explicit Reaper(net::Loop& loop);
  ~Reaper();

  // Calls `on_exit` once, from the loop. To be called before the loop runs again after the spawn.
  void watch(int pid, OnExit on_exit);
  void forget(int pid) { watched_.erase(pid); }
  // Somebody else is the parent of most workers; those that become ours when it dies are told here.
  void set_orphan_handler(std::function<void(int pid, int status)> handler) {
    on_orphan_ = std::move(handler);
  }
  // Called with each ended child before it is reaped: until then its id, and its process group's,
  // are nobody else's.
  void set_before_reap(std::function<void(int pid)> handler) { before_reap_ = std::move(handler); }
  bool has_watched() const { return !watched_.empty(); }

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
