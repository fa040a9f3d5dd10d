// The fork servers of a node, one for each key (interpreter, preloaded modules, and environment of
// the runtime environment) within limits.
//
// A plain server that dies is restarted a bounded number of times, with an increasing back-off; the
// one of the node's own interpreter is never replaced. Any other server is made on demand. It
// stays while workers of it live and for `idle_us` afterwards, and gives way to another one when
// the limit is reached (least recently used first). When it dies before it is ready, it is not
// started again for `crash_pause_us`: until then every request fails at once, with the same
// reason.
//
// Threads: the loop's. Events come from the loop, never from inside a call to this class.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/loop.h"
#include "daemons/node_manager/process/fork_server.h"
#include "daemons/node_manager/process/fork_server_key.h"

namespace rt::node {

// Interpreters that have workers on a node: more than that are a mistake, and each costs a process.
inline constexpr size_t kMaxPlainServers = 4;
// Servers that preload or have an interpreter of their own, beside the plain ones. The limit counts
// servers and not memory: the pages of a server that is used are shared with its workers, so that
// it costs nothing of its own, and one that is not used costs as much as one idle worker with the
// same modules (60 MB of its own with Debian's torch), for `idle_us` at most. Four are enough for
// the kinds of work that run on a node at the same time. Beyond that nothing fails: workers of a
// fifth kind come from a plain server, become their interpreter by an exec and import the modules
// themselves.
inline constexpr size_t kMaxSpecialServers = 4;

struct ForkServersOptions {
  std::string python;  // the node's own interpreter
  std::string python_path, session_dir;
  std::map<std::string, std::string> env;
  bool end_children = true;
  int64_t idle_us = 600'000'000;
  int64_t crash_pause_us = 10'000'000;
};

class ForkServers {
 public:
  using ServerId = int;  // never 0, never used again
  struct Events {
    std::function<void(const std::string& worker_id_hex, ProcessId process)> on_forked;
    std::function<void(const std::string& worker_id_hex, const std::string& why)> on_fork_failed;
    std::function<void(int pid, int status)> on_exited;
    // Workers of this server that have not been forked will not be.
    std::function<void(ServerId server, const std::string& why)> on_died;
  };

  ForkServers(net::Loop& loop, Reaper& reaper, ForkServersOptions options, Events events);
  ~ForkServers();

  // Starts the server of this key, unless it runs.
  void start(const ForkServerKey& key);
  // Asks the server of `key`, started if necessary, for a worker. A `key` that is not plain may be
  // served by the plain server of its interpreter. Returns the server, which counts as used until
  // release(), or 0 and says why.
  ServerId fork(const ForkServerKey& key, ForkRequest request, std::string* why);
  // A worker of this server has ended, or will not be forked.
  void release(ServerId server);
  // Nobody waits for workers of this server any more. Ends it if it is still importing: an import
  // that never ends must not keep those who come later waiting.
  void give_up_importing(ServerId server);
  // Kills the servers for good and returns whether none is left.
  bool end();

 private:
  struct Server {
    ForkServerKey key;
    std::unique_ptr<ForkServer> process;
    int deaths = 0;                // in a row, without having become ready
    int users = 0;                 // workers, living or requested
    int log_number = 0;            // no other server has the same log file
    int64_t used_us = 0;           // time of the last request
    net::Loop::TimerId timer = 0;  // back-off after a death, or the end of an idle server
    bool given_up = false;         // give_up_importing() ended it
    std::string crash;             // why the import ended the server
    int64_t crash_until_us = 0;
  };
  using Servers = std::map<ServerId, Server>;

  Servers::iterator find(const ForkServerKey& key);
  // Returns a running server of the key. kResourceExhausted: there are as many as there may be;
  // kUnavailable: it cannot run now.
  Result<Servers::iterator> running(const ForkServerKey& key);
  bool make_room(bool special);
  void erase(Servers::iterator it);
  int free_log_number() const;
  void launch(ServerId id, Server& entry);
  void became_ready(ServerId id);
  void died(ServerId id, const std::string& why);
  void after(int64_t delay_us, ServerId id, void (ForkServers::*what)(ServerId));
  void restart(ServerId id);
  void end_idle(ServerId id);

  net::Loop& loop_;
  Reaper& reaper_;
  ForkServersOptions options_;
  Events events_;
  Servers servers_;
  ServerId last_id_ = 0;
  bool ending_ = false;
  // Tasks posted to the loop check whether this object still exists.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
