// systemd's notification protocol (Type=notify): READY=1 to the datagram socket $NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace rt::daemon {

class ReadyNotice {
 public:
  // Takes $NOTIFY_SOCKET out of the environment: it is not for our children.
  ReadyNotice();
  // Nothing when nobody asked for it. A notice that cannot be sent is a warning in the log.
  void send() const;

 private:
  std::string socket_;
};

}  // namespace rt::daemon
