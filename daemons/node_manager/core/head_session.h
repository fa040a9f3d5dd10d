// The way of the node to its head: when it connects and registers, when it tries again, and when it
// gives up. It gives up when the head cannot be reached for head_reconnect_timeout_ms, and at once
// when another attempt cannot help (wrong token, cluster or version, or a refusal). Before the
// first registration the time is connect_timeout_ms, because the address may be wrong; the head's
// own node was started with its head and waits as long as for a lost one, which may have a slow
// disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/config/settings.h"

namespace rt::node {

class HeadSession {
 public:
  // `settings` outlives the session. `head` is the head's address, for people.
  HeadSession(const Settings& settings, std::string head, bool is_head_node);
  ~HeadSession();

  // The next deed, if there is one.
  struct Turn {
    bool connect = false;               // connect to the head, and register once that is done
    std::optional<Error> close = {};    // close the connection, for this reason
    std::optional<Error> give_up = {};  // once: no attempt follows
  };
  Turn start(Now now);
  // An attempt to connect has failed, or the end of a connection (lost()) has been dealt with.
  Turn failed(const Error& why, Now now);
  void registered();
  // The head, or the network, has answered RegisterNode with an error.
  Turn refused(const Error& why);
  // A connection has ended. Returns whether the node was registered over it.
  bool lost(Now now);
  Turn tick(Now now);
  // The steady time at which tick() has something to do, or -1.
  int64_t next_tick_us() const { return due_us_; }
  // No attempt follows. A connection that is open may stay.
  void stop();

  bool is_registered() const { return registered_; }
  bool is_stopped() const { return stopped_; }

 private:
  Turn give_up(const Error& why, const std::string& message);

  const Settings& settings_;
  const std::string head_;
  // The head is known to be at its address.
  bool knows_head_;
  bool registered_ = false, stopped_ = false;
  int64_t lost_us_ = 0;   // when the head was lost, or start()
  int64_t pause_us_ = 0;  // between the last two attempts
  int64_t due_us_ = -1;   // the next attempt; -1: none is planned
};

}  // namespace rt::node
