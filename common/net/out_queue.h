// Private to common/net: the bytes that a stream still has to send. Small writes collect in one
// string, the tail; large blocks are referenced. Everything is sent in order, with as few system
// calls as the socket allows.
#pragma once

#include <deque>
#include <string>

#include "common/base/bytes.h"

namespace rt::net {

class OutQueue {
 public:
  enum class Sent { kAll, kBlocked, kError };

  // The string to append to; valid until the next send() or append_ref().
  std::string& tail() { return tail_; }
  void append(Bytes copied) {
    tail_.append(reinterpret_cast<const char*>(copied.data()), copied.size());
  }
  void append_ref(Bytes referenced, Keepalive keepalive);
  size_t size() const { return segment_bytes_ + tail_.size() - tail_sent_; }
  bool empty() const { return size() == 0; }
  void clear();
  // Sends without blocking. kBlocked: the socket is full, or a stream's share of one turn has been
  // sent. kError: errno says why.
  Sent send(int fd);
  // Does the same in a signal handler: allocates and frees nothing, and has no limit per turn.
  // Bytes that it has sent are not sent again.
  Sent send_last(int fd);

 private:
  struct Segment {
    // Either `copied` or `referenced` holds the bytes.
    std::string copied;
    Bytes referenced;
    Keepalive keepalive;
    size_t sent = 0;
    Bytes rest() const {
      return (keepalive || !referenced.empty() ? referenced : as_bytes(copied)).subspan(sent);
    }
  };
  void advance(size_t n);
  void note_sent(size_t n);
  ssize_t send_once(int fd);

  std::deque<Segment> segments_;  // These precede the tail.
  size_t segment_bytes_ = 0;
  std::string tail_;
  size_t tail_sent_ = 0;  // The bytes at the front of tail_ that have been sent.
};

}  // namespace rt::net
