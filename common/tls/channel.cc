#include "common/tls/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/clock.h"

namespace rt::tls {
namespace {

class TlsChannel final : public net::Channel {
 public:
  TlsChannel(Fd fd, std::unique_ptr<Session> session)
      : net::Channel(std::move(fd)), session_(std::move(session)) {}
  ~TlsChannel() override {
    session_->send_close_notify();
    (void)send_records(0);
  }

  Status shake_hands(int64_t timeout_ms) {
    const int64_t deadline_us = steady_now_us() + timeout_ms * 1000;
    for (;;) {
      Result<bool> done = session_->shake_hands();
      bool sent = send_records(timeout_ms);
      if (!done) return done.error();
      if (!sent)
        return make_error(Code::kUnavailable, "the other side left during the TLS handshake");
      if (*done) return {};
      int64_t left_ms = (deadline_us - steady_now_us()) / 1000;
      if (left_ms <= 0 || receive(left_ms) <= 0)
        return make_error(Code::kTimeout, "the TLS handshake was not finished in time");
    }
  }

  ssize_t read_some(void* data, size_t size, int64_t timeout_ms) override {
    if (!ahead_.empty()) {
      size_t n = std::min(size, ahead_.size());
      std::memcpy(data, ahead_.data(), n);
      ahead_.erase(0, n);
      return static_cast<ssize_t>(n);
    }
    for (;;) {
      Result<size_t> n = session_->read({static_cast<uint8_t*>(data), size});
      if (!n && n.error().code == Code::kUnavailable) return 0;
      if (!n) return errno = EPROTO, -1;
      if (*n > 0) return static_cast<ssize_t>(*n);
      if (!send_records(timeout_ms)) return -1;
      ssize_t came = receive(timeout_ms);
      if (came <= 0) return came;
    }
  }

  ssize_t write_some(const void* data, size_t size, int64_t timeout_ms) override {
    constexpr size_t kPieceBytes = 64 << 10;
    size_t n = std::min(size, kPieceBytes);
    if (!session_->write({static_cast<const uint8_t*>(data), n})) return errno = EPROTO, -1;
    return send_records(timeout_ms) ? static_cast<ssize_t>(n) : -1;
  }

  // Bytes on the socket may be part of a record, or carry no plain text, so this reads ahead.
  bool wait_readable(int64_t timeout_ms) override {
    if (!ahead_.empty()) return true;
    char data[4096];
    ssize_t n = read_some(data, sizeof data, timeout_ms);
    if (n > 0) ahead_.assign(data, static_cast<size_t>(n));
    return n >= 0 || errno != ETIMEDOUT;
  }

 private:
  ssize_t receive(int64_t timeout_ms) {
    uint8_t data[16 << 10];
    ssize_t n = net::Channel::read_some(data, sizeof data, timeout_ms);
    if (n > 0 && !session_->received({data, static_cast<size_t>(n)})) return errno = ENOMEM, -1;
    return n;
  }

  bool send_records(int64_t timeout_ms) {
    std::string records;
    session_->take_all(&records);
    for (size_t sent = 0; sent < records.size();) {
      ssize_t n =
          net::Channel::write_some(records.data() + sent, records.size() - sent, timeout_ms);
      if (n < 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }

  std::unique_ptr<Session> session_;
  std::string ahead_;  // Plain text that wait_readable() has read.
};

}  // namespace

Result<std::unique_ptr<net::Channel>> accept_channel(Fd& fd, const Tls& tls, int64_t timeout_ms) {
  uint8_t first = 0;
  net::Channel look(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)));
  if (!look.wait_readable(timeout_ms) || ::recv(fd.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
    return make_error(Code::kUnavailable, "the other side said nothing");
  if (!Session::is_record(first))
    return make_error(Code::kProtocol, "the other side does not speak TLS");
  auto channel = std::make_unique<TlsChannel>(std::move(fd), tls.begin(RAY_TLS_OPEN_SERVER));
  if (Status shaken = channel->shake_hands(timeout_ms); !shaken) {
    fd = channel->release();
    return shaken.error();
  }
  return std::unique_ptr<net::Channel>(std::move(channel));
}

}  // namespace rt::tls
