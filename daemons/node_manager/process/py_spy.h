// py-spy of this node, when there is one: found on PATH or beside the node's interpreter, run as a
// child, with sudo when it lacks the rights and sudo asks for no password.
//
// Threads: the loop's. What still runs when this object goes is killed, and nobody is answered.
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
    std::string directory;  // for its output, meanwhile
    std::string python;     // beside which a virtual environment has py-spy
    bool is_root = false;   // then sudo has nothing to give
  };
  using Done = std::function<void(const proto::PySpyReply&)>;

  PySpy(net::Loop& loop, Reaper& reaper, Options options)
      : loop_(loop), reaper_(reaper), options_(std::move(options)) {}
  ~PySpy();

  // Calls `done` once, from the loop or at once. Whether the process may be looked at is the
  // caller's question.
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
