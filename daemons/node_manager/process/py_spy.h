// Runs the profiler py-spy on this node if it is installed, either on PATH or beside the node's
// interpreter. If py-spy lacks the rights to look at a process it is run again with sudo, provided
// that sudo needs no password.
//
// Threads: the loop's. Runs that are in progress when this object is destroyed are killed, and
// their `done` is not called.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/net/loop.h"
#include "common/proto/py_spy.pb.h"
#include "daemons/node_manager/process/process.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

class PySpy {
 public:
  struct Options {
    std::string directory;  // for temporary files with the output of py-spy
    std::string python;     // the node's interpreter
    bool is_root = false;   // sudo is not tried
  };
  using Done = std::function<void(const proto::PySpyReply&)>;

  PySpy(net::Loop& loop, Reaper& reaper, Options options);
  ~PySpy();

  // Calls `done` once, from the loop or before run() returns. The caller checks whether the
  // process may be looked at.
  void run(const proto::PySpyRequest& request, Done done);

 private:
  struct Run {
    proto::PySpyRequest request;
    Done done;
    std::string program;
    bool with_sudo = false, out_of_time = false;
    ProcessId process;
    net::Loop::TimerId timer = 0;
  };
  std::string file(uint64_t number, const char* what) const;
  std::vector<std::string> command(uint64_t number, const Run& run) const;
  void start(uint64_t number);
  void exited(uint64_t number, int status);
  void finish(uint64_t number, proto::PySpyReply::Outcome outcome, const std::string& text);

  net::Loop& loop_;
  Reaper& reaper_;
  const Options options_;
  std::map<uint64_t, Run> runs_;
  uint64_t next_ = 1;
};

}  // namespace rt::node
