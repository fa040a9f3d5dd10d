// Processes, and the connections between them.
//
// A connection delivers messages in order, each after a random delay. Messages are lost only
// together with the connection: whatever is in flight then may be lost, and each end learns of the
// loss at its own time. A process that ends leaves its connections either in order (what it had
// sent arrives, followed by the end of the stream) or abruptly. While two hosts are partitioned,
// messages between them wait, new connections time out, and some of the open connections break.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "tests/sim/virtual_clock.h"
#include "worker/core/task_channel.h"

namespace rt::sim {

class Network;
class Channel;
using ChannelPtr = std::shared_ptr<Channel>;

// A process of the model. The object lives until the end of the simulation; after the process has
// ended none of its events run.
class Process {
 public:
  Process(VirtualClock& clock, Network& network, int host);
  virtual ~Process() = default;
  Process(const Process&) = delete;

  // Called with the server's end of a new connection. There is no handler for messages: a message
  // is a function that the sender provides and that runs at the receiver.
  virtual void accepted(const ChannelPtr&) {}
  bool alive() const { return alive_; }
  int host() const { return host_; }
  uint64_t number() const { return number_; }
  // kAbrupt is like a host that loses power, kOrderly like a process that the kernel cleans up
  // after.
  enum class Exit { kOrderly, kAbrupt };
  // A timer for a core that says when it wants to be called; it is only ever moved forward.
  struct Alarm {
    VirtualClock::Id timer = 0;
    int64_t at_us = 0;
  };

 protected:
  // Schedules `run`, which is skipped if the process has ended by then.
  VirtualClock::Id after(int64_t delay_us, const char* what, std::function<void()> run);
  void end(Exit how);
  // Rings at `at_us` or before; -1: never, unless it is set.
  void ring_by(Alarm& alarm, int64_t at_us, const char* what, std::function<void()> ring);

  VirtualClock& clock_;
  Network& network_;

 private:
  const int host_;
  const uint64_t number_;
  bool alive_ = true;
};

// One end of a connection.
class Channel : public std::enable_shared_from_this<Channel>, public worker::TaskChannel {
 public:
  using AtPeer = std::function<void(Channel& arrived)>;
  template <class T>
  using Answer = std::function<void(Result<T>)>;

  // Sends a message: `at_peer` runs at the peer when it arrives. Dropped if the connection is
  // gone.
  void send(const char* what, AtPeer at_peer);
  // Sends a request: `serve` runs at the peer and may answer later. `done` runs here exactly once,
  // unless this process ends, with kUnavailable if the connection breaks and kTimeout after
  // `timeout_us` (-1: never).
  template <class T>
  void call(const char* what, std::function<void(Channel&, Answer<T>)> serve, Answer<T> done,
            int64_t timeout_us = -1);
  // Closes the connection. Messages sent before still arrive. on_closed follows at this end as
  // well.
  void close();

  bool open() const { return open_; }
  Process* process() const { return process_; }  // the process at this end
  Process* peer() const {                        // at the other end; null if the connection is over
    const ChannelPtr there = peer_.lock();
    return there ? there->process_ : nullptr;
  }
  uint64_t connection() const { return connection_; }
  std::function<void()> on_closed;  // called once, when this end learns that the connection is gone

 private:
  friend class Network;
  void lost();
  // Registers a call and returns its number, or 0 if the connection is closed and `failed` is
  // going to be called.
  uint64_t wait_for_answer(std::function<void(const Error&)> failed, int64_t timeout_us);

  Network* network_ = nullptr;
  Process* process_ = nullptr;
  std::weak_ptr<Channel> peer_;
  uint64_t connection_ = 0;
  bool open_ = true;
  int64_t last_arrival_us_ = 0;  // arrival of the last message that this end sent
  uint64_t last_call_ = 0;
  std::map<uint64_t, std::function<void(const Error&)>> calls_;  // calls without an answer yet
};

struct NetworkOptions {
  int64_t local_min_us = 10, local_max_us = 60;     // delay of a message within a host
  int64_t remote_min_us = 80, remote_max_us = 600;  // delay of a message between hosts
  double slow_message = 0.002;                      // share of messages that take up to slow_max_us
  int64_t slow_max_us = 30'000;
  // Within this time each end learns that a connection broke, or that the peer's host is gone.
  int64_t notice_max_us = 200'000;
  int64_t notice_lost_host_max_us = 2'000'000;
  int64_t connect_timeout_us = 5'000'000;
};

class Network {
 public:
  Network(VirtualClock& clock, uint64_t seed, NetworkOptions options)
      : clock_(clock), rng_(seed), options_(options) {}

  // Connects `from` to a process on `to_host`. `find` is called when the attempt arrives and
  // returns the process that listens there, or null if the connection is refused.
  void connect(Process& from, int to_host, const char* what, std::function<Process*()> find,
               std::function<void(Result<ChannelPtr>)> done);

  // ---- faults
  // Breaks one random connection between hosts, or of this host with another one. Returns its
  // number, or 0 if there is none.
  uint64_t break_random(std::optional<int> of_host = {});
  // Cuts the hosts of `group` off from all others until heal(), and breaks this share of the
  // connections between the two sides.
  void partition(std::set<int> group, double broken_connections);
  void heal();
  bool partitioned(int a, int b) const {
    return a != b && !cut_off_.empty() && cut_off_.contains(a) != cut_off_.contains(b);
  }
  // Whether the connection has broken, though its ends may not know that yet.
  bool is_cut(uint64_t connection) const {
    auto it = connections_.find(connection);
    return it == connections_.end() || it->second.cut;
  }
  size_t connections() const { return connections_.size(); }
  int64_t broken() const { return broken_; }
  // Called with the two processes of each connection that a fault breaks.
  std::function<void(Process&, Process&)> on_broken;

 private:
  friend class Channel;
  friend class Process;
  // A message that waits for heal().
  struct Held {
    std::weak_ptr<Channel> from;
    const char* what;
    Channel::AtPeer at_peer;
  };
  struct Connection {
    ChannelPtr ends[2];
    bool cut = false;  // messages in flight are lost
    int hosts[2];
  };
  int64_t delay_us(int a, int b);
  void transmit(Channel& from, const char* what, Channel::AtPeer at_peer);
  void cut(Connection& connection, int64_t notice_max_us);
  void fin(Channel& from);  // sends the end of the stream
  void process_ended(Process& process, Process::Exit how);
  void forget_if_over(uint64_t id);

  VirtualClock& clock_;
  Rng rng_;
  const NetworkOptions options_;
  std::map<uint64_t, Connection> connections_;
  std::map<uint64_t, std::set<uint64_t>> of_process_;  // connections, by process number
  std::map<uint64_t, std::vector<Held>> held_;  // by connection, while its hosts are partitioned
  std::set<int> cut_off_;                       // hosts on one side of the partition; empty: none
  uint64_t last_connection_ = 0, last_process_ = 0;
  int64_t broken_ = 0;
};

template <class T>
void Channel::call(const char* what, std::function<void(Channel&, Answer<T>)> serve, Answer<T> done,
                   int64_t timeout_us) {
  auto once = std::make_shared<Answer<T>>(std::move(done));
  uint64_t id = wait_for_answer([once](const Error& error) { (*once)(error); }, timeout_us);
  if (!id) return;
  send(what, [serve = std::move(serve), what, once, id](Channel& there) {
    std::weak_ptr<Channel> server = there.weak_from_this();
    serve(there, [server, what, once, id](Result<T> result) {
      auto back = server.lock();
      if (!back) return;
      back->send(what, [once, id, result = std::move(result)](Channel& here) {
        if (here.calls_.erase(id)) (*once)(result);
      });
    });
  });
}

}  // namespace rt::sim
