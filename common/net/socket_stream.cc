#include "common/net/socket_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "common/net/sockets.h"

namespace rt::net {
namespace {

// The limit of one stream in one turn, so that the others get their share.
constexpr int kMaxReads = 16;
constexpr size_t kMaxReadBytes = 4 << 20;
constexpr int kMaxFinalReads = 256;  // The limit for a stream that broke while sending.

class StreamHandle final : public Stream {
 public:
  explicit StreamHandle(std::shared_ptr<SocketStream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->close(); }

  void start(StreamHandler* handler) override { stream_->start(handler); }
  void write(Bytes copied) override { stream_->write(copied); }
  void write_ref(Bytes referenced, Keepalive keepalive) override {
    stream_->write_ref(referenced, std::move(keepalive));
  }
  std::string& out() override { return stream_->out(); }
  void flush() override { stream_->flush(); }
  size_t queued_bytes() const override { return stream_->queued_bytes(); }
  void close() override { stream_->close(); }
  bool is_unix() const override { return stream_->is_unix(); }
  std::string peer_name() const override { return stream_->peer_name(); }
  int native_handle() const override { return stream_->native_handle(); }

 private:
  std::shared_ptr<SocketStream> stream_;  // Shared with the reactor; see SocketStream.
};

}  // namespace

std::unique_ptr<Stream> make_stream(Reactor& reactor, int fd) {
  return std::make_unique<StreamHandle>(std::make_shared<SocketStream>(reactor, fd));
}

SocketStream::SocketStream(Reactor& reactor, int fd)
    : reactor_(reactor), fd_(fd), is_unix_(is_unix_socket(fd)), peer_name_(peer_name_of(fd)) {
  prepare_connected(fd);
}

SocketStream::~SocketStream() {
  // Nobody watches the socket any more, since the reactor shares ownership while it watches.
  if (fd_ >= 0) ::close(fd_);
}

void SocketStream::start(StreamHandler* handler) {
  handler_ = handler;
  if (is_open()) set_interest(interest_ | kRead);
}

void SocketStream::set_interest(uint32_t interest) {
  if (interest == interest_ && key_ != 0) return;
  interest_ = interest;
  if (key_ != 0) {
    reactor_.update(key_, interest);
    return;
  }
  key_ = reactor_.watch(fd_, shared_from_this(), interest, Reactor::Trigger::kEdge);
  if (key_ == 0) break_off(errno);
}

void SocketStream::write_ref(Bytes referenced, Keepalive keepalive) {
  mark_dirty();
  queue_.append_ref(referenced, std::move(keepalive));
}

void SocketStream::flush() {
  if (!is_open() || broken_errno_ != 0) {
    queue_.clear();
    return;
  }
  if (queue_.size() > kHighWaterBytes) congested_ = true;
  if ((interest_ & kWrite) == 0) send_queued();
}

void SocketStream::send_queued() {
  switch (queue_.send(fd_)) {
    case OutQueue::Sent::kAll:
      if (interest_ & kWrite) set_interest(interest_ & ~kWrite);
      break;
    case OutQueue::Sent::kBlocked:
      // The interest is set again even if it was set: under edge triggering, a stream that stopped
      // at its share of a turn must be armed anew.
      interest_ &= ~kWrite;
      set_interest(interest_ | kWrite);
      break;
    case OutQueue::Sent::kError: break_off(errno); return;
  }
  note_drained();
}

void SocketStream::note_drained() {
  if (!congested_ || queue_.size() > kHighWaterBytes / 2) return;
  congested_ = false;
  // The handler is called from the loop, and not from inside the write that happened to drain the
  // queue.
  reactor_.loop().post([self = shared_from_this()] {
    if (self->handler_ != nullptr && self->is_open()) self->handler_->on_drained();
  });
}

void SocketStream::break_off(int errnum) {
  if (broken_errno_ != 0) return;
  broken_errno_ = errnum != 0 ? errnum : EIO;
  queue_.clear();
  reactor_.loop().post([self = shared_from_this()] { self->finish_broken(); });
}

void SocketStream::finish_broken() {
  // The peer may have said why it hung up, so what it sent is delivered before the end.
  for (int i = 0; i < kMaxFinalReads && is_open() && handler_ != nullptr; ++i) {
    if (!read_some(true)) break;
  }
  if (is_open())
    fail(make_error(Code::kUnavailable,
                    std::string("connection lost: ") + std::strerror(broken_errno_)));
}

bool SocketStream::on_ready(uint32_t what) {
  if (is_open() && (what & kWrite) && broken_errno_ == 0 && (interest_ & kWrite)) send_queued();
  if (is_open() && (what & (kRead | kHangup)) && handler_ != nullptr)
    return read_some((what & kHangup) != 0);
  return false;
}

// Returns true when there may be more to read. A short read means that the socket is empty, unless
// the end of the stream may follow (`until_end`).
bool SocketStream::read_some(bool until_end) {
  size_t total = 0;
  for (int i = 0; i < kMaxReads && total < kMaxReadBytes; ++i) {
    MutableBytes buffer = handler_->read_buffer();
    if (!is_open()) return false;
    ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) {
      total += static_cast<size_t>(n);
      handler_->on_read(static_cast<size_t>(n));
      if (!is_open()) return false;
      if (static_cast<size_t>(n) < buffer.size() && !until_end) return false;
    } else if (n == 0) {
      fail(make_error(Code::kUnavailable, "the other side closed the connection"));
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return false;
    } else if (errno != EINTR) {
      fail(make_error(Code::kUnavailable, std::string("connection lost: ") + std::strerror(errno)));
      return false;
    }
  }
  return true;
}

void SocketStream::close() {
  handler_ = nullptr;
  if (!is_open()) return;
  if (key_ != 0) reactor_.unwatch(std::exchange(key_, 0));
  ::close(std::exchange(fd_, -1));
  queue_.clear();
}

void SocketStream::fail(Error why) {
  StreamHandler* handler = handler_;
  close();
  if (handler != nullptr) handler->on_closed(why);
}

}  // namespace rt::net
