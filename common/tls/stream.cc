#include "common/tls/stream.h"

#include <fcntl.h>

#include <deque>

namespace rt::tls {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// So many bytes are encrypted at a time. Large pieces of ciphertext are handed on without another
// copy.
constexpr size_t kPieceBytes = 256 << 10;

// The state of a stream. Shared between the user's handle and pending callbacks, so that a handler
// may destroy its stream in the middle of a callback.
class Core final : public net::StreamHandler, public std::enable_shared_from_this<Core> {
 public:
  Core(net::Loop& loop, std::unique_ptr<net::Stream> socket, std::unique_ptr<Session> session,
       PlainText plain)
      : loop_(loop),
        socket_(std::move(socket)),
        session_(std::move(session)),
        plain_(std::move(plain)),
        received_(kReadBytes, '\0') {}

  void start(net::StreamHandler* handler) {
    handler_ = handler;
    socket_->start(this);
    shake_hands();  // A client speaks first.
  }

  std::string& out() {
    if (!dirty_) {
      dirty_ = true;
      loop_.post([weak = weak_from_this()] {
        if (auto self = weak.lock(); self && self->dirty_) self->flush();
      });
    }
    return tail_;
  }

  void write_ref(Bytes referenced, Keepalive keepalive) {
    std::string& before = out();
    waiting_bytes_ += before.size() + referenced.size();
    if (!before.empty()) waiting_.push_back({std::exchange(before, {}), {}, nullptr});
    waiting_.push_back({{}, referenced, std::move(keepalive)});
  }

  void flush() {
    dirty_ = false;
    if (!open_) return drop_waiting();
    if (queued_bytes() > net::kHighWaterBytes) congested_ = true;
    if (!ready_) return;
    while (!waiting_.empty()) {
      Piece piece = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= piece.bytes().size();
      if (!encrypt(piece.bytes())) return;
    }
    if (!encrypt(as_bytes(tail_))) return;
    tail_.clear();
    socket_->flush();
    note_drained();
  }

  size_t queued_bytes() const { return waiting_bytes_ + tail_.size() + socket_->queued_bytes(); }

  void close() {
    handler_ = nullptr;
    if (!std::exchange(open_, false)) return;
    drop_waiting();
    socket_->close();
  }

  net::Stream& socket() { return *socket_; }

  // net::StreamHandler: the events of the socket.
  MutableBytes read_buffer() override {
    return {reinterpret_cast<uint8_t*>(received_.data()), received_.size()};
  }

  void on_read(size_t n) override {
    auto self = shared_from_this();
    Bytes ciphertext{reinterpret_cast<const uint8_t*>(received_.data()), n};
    if (!begun_) {
      begun_ = true;
      if (!Session::is_record(ciphertext[0])) return on_plain(ciphertext);
    }
    if (passes_plain_) return pass_on(ciphertext);
    if (Status taken = session_->received(ciphertext); !taken) return fail(taken.error());
    if (!ready_ && !shake_hands()) return;
    decrypt();
  }

  void on_closed(const Error& why) override {
    auto self = shared_from_this();
    fail(ready_ || passes_plain_ ? why
                                 : make_error(why.code, why.message + " during the TLS handshake"));
  }

  void on_drained() override { note_drained(); }

 private:
  struct Piece {
    // Either `copied` or `referenced` holds the bytes.
    std::string copied;
    Bytes referenced;
    Keepalive keepalive;
    Bytes bytes() const { return copied.empty() ? referenced : as_bytes(copied); }
  };

  // True when the handshake is done and the stream is still open.
  bool shake_hands() {
    Result<bool> done = session_->shake_hands();
    send_records();  // This also follows a failure, because the alert tells the peer.
    socket_->flush();
    if (!done) {
      fail(done.error());
      return false;
    }
    if (!*done) return false;
    ready_ = true;
    flush();
    return open_;
  }

  void decrypt() {
    while (open_ && handler_ != nullptr) {
      Result<size_t> n = session_->read(handler_->read_buffer());
      if (!n) return fail(n.error());
      if (*n == 0) break;
      handler_->on_read(*n);
    }
    if (!open_ || session_->to_send() == 0) return;
    send_records();
    socket_->flush();
  }

  bool encrypt(Bytes plain) {
    while (!plain.empty()) {
      Bytes piece = plain.first(std::min(plain.size(), kPieceBytes));
      plain = plain.subspan(piece.size());
      if (Status written = session_->write(piece); !written) {
        // The error is reported from the loop, and not from inside the caller's write.
        loop_.post([self = shared_from_this(), error = written.error()] { self->fail(error); });
        return false;
      }
      send_records();
    }
    return true;
  }

  void send_records() {
    constexpr size_t kCopiedBelow = 32 << 10;
    if (session_->to_send() < kCopiedBelow) return session_->take_all(&socket_->out());
    auto records = std::make_shared<std::string>();
    session_->take_all(records.get());
    socket_->write_ref(as_bytes(*records), records);
  }

  void on_plain(Bytes bytes) {
    if (plain_.answered) {
      *plain_.answered = passes_plain_ = true;
      return pass_on(bytes);
    }
    int fd = ::fcntl(socket_->native_handle(), F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) plain_.refuse(fd);
    fail(make_error(Code::kUnauthenticated, "it does not speak TLS, which this cluster demands"));
  }

  void pass_on(Bytes bytes) {
    while (!bytes.empty() && open_ && handler_ != nullptr) {
      MutableBytes buffer = handler_->read_buffer();
      size_t n = std::min(buffer.size(), bytes.size());
      std::copy_n(bytes.begin(), n, buffer.begin());
      bytes = bytes.subspan(n);
      handler_->on_read(n);
    }
  }

  void note_drained() {
    if (!congested_ || queued_bytes() > net::kHighWaterBytes / 2) return;
    congested_ = false;
    loop_.post([self = shared_from_this()] {
      if (self->handler_ != nullptr && self->open_) self->handler_->on_drained();
    });
  }

  void drop_waiting() {
    waiting_.clear();
    waiting_bytes_ = 0;
    tail_.clear();
  }

  void fail(const Error& why) {
    net::StreamHandler* handler = handler_;
    if (!open_) return;
    close();
    if (handler != nullptr) handler->on_closed(why);
  }

  net::Loop& loop_;
  std::unique_ptr<net::Stream> socket_;
  std::unique_ptr<Session> session_;
  const PlainText plain_;
  net::StreamHandler* handler_ = nullptr;
  std::string received_;       // Received ciphertext.
  std::deque<Piece> waiting_;  // Plain text that precedes the tail.
  size_t waiting_bytes_ = 0;   // The bytes in waiting_.
  std::string tail_;
  bool open_ = true, begun_ = false, ready_ = false, passes_plain_ = false;
  bool dirty_ = false;  // Whether a flush has been posted.
  bool congested_ = false;
};

class Handle final : public net::Stream {
 public:
  explicit Handle(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~Handle() override { core_->close(); }

  void start(net::StreamHandler* handler) override { core_->start(handler); }
  void write(Bytes copied) override { core_->out().append(as_view(copied)); }
  void write_ref(Bytes referenced, Keepalive keepalive) override {
    core_->write_ref(referenced, std::move(keepalive));
  }
  std::string& out() override { return core_->out(); }
  void flush() override { core_->flush(); }
  size_t queued_bytes() const override { return core_->queued_bytes(); }
  void close() override { core_->close(); }
  bool is_unix() const override { return core_->socket().is_unix(); }
  std::string peer_name() const override { return core_->socket().peer_name(); }
  int native_handle() const override { return core_->socket().native_handle(); }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<net::Stream> make_stream(net::Loop& loop, std::unique_ptr<net::Stream> socket,
                                         std::unique_ptr<Session> session, PlainText plain) {
  return std::make_unique<Handle>(
      std::make_shared<Core>(loop, std::move(socket), std::move(session), std::move(plain)));
}

}  // namespace rt::tls
