// Sockets and timers behind one interface, with two implementations: AsioLoop for daemons
// (Boost.Asio) and PollLoop for drivers and workers (a bare epoll set that any thread may wait on,
// see poll_loop.h).
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

// Receives the events of one Stream.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Returns memory for the next bytes; never empty. Called right before each read. The memory must
  // stay valid until the matching on_read(), even if the stream is closed meanwhile; on_read() is
  // not called then.
  virtual MutableBytes read_buffer() = 0;
  virtual void on_read(size_t n) = 0;
  // The last call, made exactly once when the connection ends; not made after a local close().
  virtual void on_closed(const Error& why) = 0;
  // Called when queued_bytes() has fallen to half of kHighWaterBytes or below after having been
  // above kHighWaterBytes.
  virtual void on_drained() {}
};

// A connected byte stream. Its destruction closes it. A handler may destroy any stream, also its
// own.
class Stream {
 public:
  virtual ~Stream() = default;
  // Begins to read. `handler` must outlive the stream.
  virtual void start(StreamHandler* handler) = 0;
  // Queue bytes: write() copies them, write_ref() refers to them, with a keepalive that is held
  // until they are sent (large blocks are not copied). They are sent by flush(), or at the latest
  // at the end of the loop's current turn.
  virtual void write(Bytes copied) = 0;
  virtual void write_ref(Bytes referenced, Keepalive keepalive) = 0;
  // The tail of the outgoing queue, for callers that build frames in place: append to it, then call
  // flush() or return to the loop.
  virtual std::string& out() = 0;
  virtual void flush() = 0;
  virtual size_t queued_bytes() const = 0;
  // Closes at once; bytes that are still queued are lost.
  virtual void close() = 0;
  virtual bool is_unix() const = 0;
  virtual std::string peer_name() const = 0;  // "10.0.0.2:4242" or "unix"
  virtual int native_handle() const = 0;
};

class Listener {
 public:
  // Stops listening, and removes the file of a Unix socket that the listener bound itself.
  virtual ~Listener() = default;
  virtual Address local_address() const = 0;
};

class FdWatch {
 public:
  // Stops watching. The descriptor stays open.
  virtual ~FdWatch() = default;
};

class Loop {
 public:
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  virtual ~Loop() = default;
  virtual int64_t now_us() const = 0;  // The time of the steady clock.
  virtual TimerId run_after(int64_t delay_us, Task task) = 0;
  virtual void cancel(TimerId id) = 0;  // Does nothing for a timer that has run.
  virtual void post(Task task) = 0;     // Any thread may call it.

  // `done` is called once, never from inside connect(). A negative timeout means no limit.
  // kTimeout: the host did not answer, or there is no route to it; kUnavailable: it refused. The
  // messages name the address.
  virtual void connect(const Address& address, int64_t timeout_us,
                       std::function<void(Result<std::unique_ptr<Stream>>)> done) = 0;
  // `accept` receives connected descriptors (non-blocking, close-on-exec, TCP_NODELAY) and owns
  // them; adopt() makes a Stream of one. listen_fd() takes its descriptor.
  virtual Result<std::unique_ptr<Listener>> listen(const Address& address,
                                                   std::function<void(int fd)> accept) = 0;
  virtual Result<std::unique_ptr<Listener>> listen_fd(int listening_fd,
                                                      std::function<void(int fd)> accept) = 0;
  virtual std::unique_ptr<Stream> adopt(int fd) = 0;
  // Level-triggered: `on_readable` runs as long as the descriptor is readable. The descriptor stays
  // the caller's and must outlive the watch.
  virtual std::unique_ptr<FdWatch> watch_readable(int fd, Task on_readable) = 0;
};

}  // namespace rt::net
