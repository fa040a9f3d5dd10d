// Private to common/net: the one implementation of Stream over a socket.
//
// SocketStream is shared between the handle that its user owns (make_stream) and the reactor, so
// that a handler may destroy its stream in the middle of a callback. Threads: those of the loop.
#pragma once

#include <string>

#include "common/net/out_queue.h"
#include "common/net/reactor.h"

namespace rt::net {

class SocketStream final : public Watcher, public std::enable_shared_from_this<SocketStream> {
 public:
  SocketStream(Reactor& reactor, int fd);
  ~SocketStream() override;

  void start(StreamHandler* handler);
  std::string& out() {
    mark_dirty();
    return queue_.tail();
  }
  void write(Bytes copied) {
    out().append(reinterpret_cast<const char*>(copied.data()), copied.size());
  }
  void write_ref(Bytes referenced, Keepalive keepalive);
  void flush();
  size_t queued_bytes() const { return queue_.size(); }
  void close();
  bool is_unix() const { return is_unix_; }
  const std::string& peer_name() const { return peer_name_; }
  int native_handle() const { return fd_; }

  // Only the loop calls these functions.
  bool on_ready(uint32_t what) override;
  bool send_last() override {
    return !is_open() || broken_errno_ != 0 || queue_.send_last(fd_) != OutQueue::Sent::kBlocked;
  }
  void turn_flush() {
    dirty_ = false;
    flush();
  }

 private:
  void mark_dirty() {
    if (!dirty_) {
      dirty_ = true;
      reactor_.flush_later(shared_from_this());
    }
  }
  bool is_open() const { return fd_ >= 0; }
  bool read_some(bool until_end);
  void send_queued();
  void note_drained();
  void set_interest(uint32_t interest);
  void break_off(int errnum);
  void finish_broken();
  void fail(Error why);

  Reactor& reactor_;
  int fd_;
  const bool is_unix_;
  const std::string peer_name_;
  StreamHandler* handler_ = nullptr;  // Null until start() and after close().
  Reactor::Key key_ = 0;
  uint32_t interest_ = kNoInterest;
  OutQueue queue_;
  bool dirty_ = false;      // Whether it is in the list of streams that the reactor flushes.
  bool congested_ = false;  // Whether it went above the high-water mark and has not drained since.
  // Set when a write failed; the bytes that can still be read are delivered first.
  int broken_errno_ = 0;
};

// Makes the user's handle, whose destruction closes the stream. Takes the descriptor.
std::unique_ptr<Stream> make_stream(Reactor& reactor, int fd);

}  // namespace rt::net
