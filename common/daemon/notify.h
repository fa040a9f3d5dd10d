// What a service manager is told about a daemon: systemd's notification protocol (sd_notify(3)),
// datagrams to the socket $NOTIFY_SOCKET names. Whoever else starts a daemon (common/launch) waits
// for READY in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "common/net/loop.h"

namespace rt::daemon {

// Where nobody asked, every method does nothing; none but ready() waits for a receiver that is
// slow. `text` is for people (systemctl status); its line ends become blanks.
class Notifier {
 public:
  // Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID out of the environment: they are not for
  // our children.
  Notifier();
  void ready(const std::string& text = {})
      const;  // one that cannot be sent is a warning in the log: somebody waits for it
  void status(const std::string& text) const;
  void stopping(const std::string& why) const;
  void alive() const;
  // At most this long between two alive(): half of what the watchdog allows; 0 when none watches
  // this process.
  int64_t keep_alive_us() const { return keep_alive_us_; }

 private:
  bool send(const std::string& message, int flags) const;

  std::string socket_;
  int64_t keep_alive_us_ = 0;
};

// Says alive() from within the loop, so only while the loop turns: after a hang systemd ends the
// daemon (WatchdogSec=) and starts it again. `loop` and `notifier` outlive it.
class KeepAlive {
 public:
  KeepAlive(net::Loop& loop, const Notifier& notifier);
  ~KeepAlive();
  KeepAlive(const KeepAlive&) = delete;

 private:
  void turn();

  net::Loop& loop_;
  const Notifier& notifier_;
  net::Loop::TimerId timer_ = 0;
};

}  // namespace rt::daemon
