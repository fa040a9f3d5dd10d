// One Python fork server and the workers it forks: python/ray/_private/fork_server.py at the other
// end of a socketpair.
//
// Protocol: JSON lines.
// {"op":"fork","worker_id":hex,"stdout":path,"stderr":path,"args":{...},"env":{...}} is answered by
// {"forked":hex,"pid":n,"start":t} or {"failed":hex,"error":text}; {"exited":pid,"status":wait
// status} follows. The server says {"ready":pid} once it has imported what workers need. It ends,
// with its children, when the socket closes.
//
// Requests before it is ready wait in the socket. When it dies, on_died is called and the object is
// of no more use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/net/loop.h"
#include "daemons/node_manager/process/process.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

struct ForkRequest {
  std::string worker_id_hex;
  std::string stdout_path, stderr_path;  // "%p" becomes the worker's process id
  std::map<std::string, std::string> args, env;
};

class ForkServer final : public net::StreamHandler {
 public:
  struct Options {
    std::string python;       // interpreter
    std::string python_path;  // directory that holds the `ray` package
    std::string log_path;     // its own output; the tail explains its death
    std::map<std::string, std::string> env;
    bool end_children = true;  // of the workers
  };
  struct Events {
    std::function<void()> on_ready;
    std::function<void(const std::string& worker_id_hex, ProcessId process)> on_forked;
    std::function<void(const std::string& worker_id_hex, const std::string& why)> on_fork_failed;
    std::function<void(int pid, int status)> on_exited;
    std::function<void(const std::string& why)> on_died;
  };

  static Result<std::unique_ptr<ForkServer>> start(net::Loop& loop, Reaper& reaper,
                                                   const Options& options, Events events);
  ~ForkServer() override;  // closes the socket: the server ends its children and itself

  void fork(const ForkRequest& request);
  bool ready() const { return ready_; }
  int pid() const { return process_.pid; }

  // net::StreamHandler
  MutableBytes read_buffer() override;
  void on_read(size_t n) override;
  void on_closed(const Error& why) override;

 private:
  ForkServer(net::Loop& loop, Reaper& reaper, const Options& options, Events events);
  void on_line(const std::string& line);
  void died(const std::string& why);

  net::Loop& loop_;
  Reaper& reaper_;
  Options options_;
  Events events_;
  ProcessId process_;
  std::unique_ptr<net::Stream> stream_;
  std::string partial_;
  char buffer_[16384];
  bool ready_ = false, dead_ = false, exited_ = false;
  std::string exit_text_;
};

}  // namespace rt::node
