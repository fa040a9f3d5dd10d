// Tells a service manager about a daemon by systemd's notification protocol (sd_notify(3)):
// datagrams to the socket named by $NOTIFY_SOCKET. A program that starts a daemon itself
// (launch/node) waits for READY in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "common/net/loop.h"

namespace rt::daemon {

// Without $NOTIFY_SOCKET every method does nothing. Only ready() waits for a slow receiver. `text`
// is for people (systemctl status); its line ends become blanks.
class Notifier {
 public:
  // Removes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID from the environment, since they are
  // not meant for child processes.
  Notifier();
  // Warns in the log when the message cannot be sent, because somebody waits for it.
  void ready(const std::string& text = {}) const;
  void status(const std::string& text) const;
  void stopping(const std::string& why) const;
  void alive() const;
  // The longest time between two calls of alive(): half of what the watchdog allows. 0: no watchdog
  // watches this process.
  int64_t keep_alive_us() const { return keep_alive_us_; }

 private:
  bool send(const std::string& message, int flags) const;

  std::string socket_;
  int64_t keep_alive_us_ = 0;
};

// Calls alive() from within the loop, so only while the loop turns: systemd ends a daemon that
// hangs (WatchdogSec=) and starts it again. `loop` and `notifier` must outlive it.
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
