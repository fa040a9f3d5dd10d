// Sockets and timers behind one interface. Two implementations: AsioLoop (daemons, Boost.Asio) and
// PollLoop (drivers and workers: a bare epoll set that any thread may wait on, see poll_loop.h).
//
// Threads: everything here is called from the loop's thread (AsioLoop) or under the owner's mutex
// (PollLoop), except post(), which any thread may call at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/net/address.h"

namespace rt::net {

// Above this many queued bytes a stream counts as congested (see on_drained()).
inline constexpr size_t kHighWaterBytes = 1 << 20;

class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Where the next bytes go. Called right before each read; never empty. Between a read_buffer()
  // and its on_read() the memory stays valid, even if the handler is told to close meanwhile (then
  // on_read is not called).
  virtual MutableBytes read_buffer() = 0;
  virtual void on_read(size_t n) = 0;
  // Exactly once, last call. After a local close() it is not called.
  virtual void on_closed(const Error& why) = 0;
  // queued_bytes() fell to half of the high-water mark or below after having been above it.
  virtual void on_drained() {}
};

// A connected byte stream. Destruction closes it.
class Stream {
 public:
  virtual ~Stream() = default;
  // Reading starts here. `handler` outlives the stream.
  virtual void start(StreamHandler* handler) = 0;
  // Queues bytes: copied, or referenced with what keeps them alive (for large blocks: no copy until
  // the socket takes them). Sent by flush(), or at the latest at the end of the loop's current
  // turn.
  virtual void write(Bytes copied) = 0;
  virtual void write_ref(Bytes referenced, Keepalive keepalive) = 0;
  // The tail of the outgoing queue, for callers that build frames in place: append to it, then call
  // flush() or return to the loop.
  virtual std::string& out() = 0;
  virtual void flush() = 0;
  virtual size_t queued_bytes() const = 0;
  virtual void close() = 0;
  virtual bool is_unix() const = 0;
  virtual std::string peer_name() const = 0;  // "10.0.0.2:4242", "unix"
  virtual int native_handle() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;  // stops listening; unlinks a Unix socket it bound itself
  virtual Address local_address() const = 0;
};

class FdWatch {
 public:
  virtual ~FdWatch() = default;  // stops watching; does not close the descriptor
};

class Loop {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  virtual ~Loop() = default;
  virtual int64_t now_us() const = 0;  // steady, read once per turn where that is good enough
  virtual TimerId run_after(int64_t delay_us, Task task) = 0;
  virtual void cancel(TimerId id) = 0;  // no-op for one that ran
  virtual void post(Task task) = 0;     // any thread

  // `done` is called once, never from inside connect(). kTimeout: no answer from the host, or no
  // way to it; kUnavailable: refused. Both name the address.
  virtual void connect(const Address& address, int64_t timeout_us,
                       std::function<void(Result<std::unique_ptr<Stream>>)> done) = 0;
  // accept() gets raw connected descriptors (non-blocking, close-on-exec, TCP_NODELAY) and owns
  // them; adopt() makes a Stream of one.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                   std::function<void(int fd)> accept) = 0;
  virtual Result<std::unique_ptr<Listener>> listen_fd(
      int listening_fd, std::function<void(int fd)> accept) = 0;  // takes the descriptor
  virtual std::unique_ptr<Stream> adopt(int fd) = 0;
  virtual std::unique_ptr<FdWatch> watch_readable(int fd, Task on_readable) = 0;  // level-triggered
};

}  // namespace rt::net
