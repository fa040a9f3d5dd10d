// Client of one Python fork server (python/ray/_private/fork_server.py), which runs at the other
// end of a socket pair and forks workers on request.
//
// The protocol is JSON, one object per line:
//   request  {"op":"fork","worker_id":hex,"stdout":path,"stderr":path,"args":{...},"env":{...}}
//   reply    {"forked":hex,"pid":n,"start":t}, or {"failed":hex,"error":text}
//   events   {"making":true} before the interpreter of Options::interpreter is made,
//            {"importing":module} before each module of Options::preload,
//            {"ready":pid} once the modules that workers need are imported,
//            {"exited":pid,"status":wait status} when a worker has ended
// The server ends, and its children with it, when the socket closes.
//
// Requests may be sent at once; before the server is ready they wait in the socket. When the
// server dies, on_died is called and the object is of no further use. Everything happens in the
// thread of the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/net/alarm.h"
#include "common/net/loop.h"
#include "daemons/node_manager/process/process.h"
#include "daemons/node_manager/process/reaper.h"

namespace rt::node {

struct ForkRequest {
  std::string worker_id_hex;
  std::string stdout_path, stderr_path;  // "%p" is replaced by the worker's process id
  std::map<std::string, std::string> args, env;
};

class ForkServer final : public net::StreamHandler {
 public:
  struct Options {
    std::string python;       // interpreter
    std::string python_path;  // directory that holds the `ray` package
    std::string log_path;     // output of the server itself; its tail goes into on_died
    // Modules to import before the server is ready. Those that cannot be imported there are left
    // to the workers (python/ray/_private/preload.py).
    std::vector<std::string> preload;
    // The interpreter that the server makes and becomes, as a JSON object for the server: fields of
    // the runtime environment and what is needed to make them. It is sent over the socket, as it
    // may hold passwords of package indexes. Where it cannot be made, it is left to the workers.
    std::string interpreter;
    std::map<std::string, std::string> env;
    bool end_children = true;  // end the processes that a worker started together with the worker
  };
  // Called from the loop. on_died is called last, and may destroy this object.
  struct Events {
    std::function<void()> on_ready;
    std::function<void(const std::string& worker_id_hex, ProcessId process)> on_forked;
    std::function<void(const std::string& worker_id_hex, const std::string& why)> on_fork_failed;
    std::function<void(int pid, int status)> on_exited;  // `status` as wait() returns it
    std::function<void(const std::string& why)> on_died;
  };

  static Result<std::unique_ptr<ForkServer>> start(net::Loop& loop, Reaper& reaper,
                                                   const Options& options, Events events);
  ~ForkServer() override;  // closes the socket, upon which the server ends its children and itself

  void fork(const ForkRequest& request);
  // Ends the server at once, and its children with it. on_died follows.
  void kill();
  bool ready() const { return ready_; }
  int pid() const { return process_.pid; }

  // net::StreamHandler
  MutableBytes read_buffer() override;
  void on_read(size_t n) override;
  void on_closed(const Error& why) override;

 private:
  ForkServer(net::Loop& loop, Reaper& reaper, const Options& options, Events events);
  void on_line(const std::string& line);
  void exited(int status);
  void died(const std::string& why);

  net::Loop& loop_;
  Reaper& reaper_;
  Options options_;
  Events events_;
  ProcessId process_;
  std::unique_ptr<net::Stream> stream_;
  std::string partial_;  // received bytes that do not make a whole line yet
  std::string doing_;    // its part of the message when the server ends before it is ready
  char buffer_[16384];
  std::string how_it_ended_;  // once exited_
  bool ready_ = false, dead_ = false, exited_ = false, closed_ = false;
  net::Alarm unclosed_;  // rings when the process has ended and its socket stays open
};

}  // namespace rt::node
