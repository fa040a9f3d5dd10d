#include "launch/daemon/notify.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "common/base/environment.h"
#include "common/base/fd.h"
#include "common/base/log.h"

namespace rt::daemon {
namespace {

int64_t number(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// Returns the time-out of the watchdog. As in sd_watchdog_enabled(3), the variables may be meant
// for the process that started this one.
int64_t watchdog_us() {
  std::string pid = environment("WATCHDOG_PID");
  if (!pid.empty() && number(pid) != ::getpid()) return 0;
  return std::max<int64_t>(0, number(environment("WATCHDOG_USEC")));
}

// Turns line ends into blanks, because each would begin another assignment of the protocol.
std::string status_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "STATUS=" + text;
}

}  // namespace

Notifier::Notifier() : socket_(environment("NOTIFY_SOCKET")), keep_alive_us_(watchdog_us() / 2) {
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  if (socket_.empty()) keep_alive_us_ = 0;
}

void Notifier::ready(const std::string& text) const {
  if (!send(text.empty() ? "READY=1" : "READY=1\n" + status_line(text), 0))
    RT_WARN("cannot tell {} that this is ready: {}", socket_, std::strerror(errno));
}

void Notifier::status(const std::string& text) const { send(status_line(text), MSG_DONTWAIT); }

void Notifier::stopping(const std::string& why) const {
  send("STOPPING=1\n" + status_line(why), MSG_DONTWAIT);
}

void Notifier::alive() const { send("WATCHDOG=1", MSG_DONTWAIT); }

bool Notifier::send(const std::string& message, int flags) const {
  if (socket_.empty()) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  // The address is an abstract name.
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;
  Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  return ::sendto(fd.get(), message.data(), message.size(), flags | MSG_NOSIGNAL,
                  reinterpret_cast<sockaddr*>(&address), size) >= 0;
}

KeepAlive::KeepAlive(net::Loop& loop, const Notifier& notifier) : loop_(loop), notifier_(notifier) {
  if (notifier_.keep_alive_us() > 0) turn();
}

KeepAlive::~KeepAlive() {
  if (timer_) loop_.cancel(timer_);
}

void KeepAlive::turn() {
  notifier_.alive();
  timer_ = loop_.run_after(notifier_.keep_alive_us(), [this] { turn(); });
}

}  // namespace rt::daemon
