#include "common/net/out_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace rt::net {
namespace {

constexpr size_t kMaxParts = 64;
// An idle stream keeps at most this much of its tail's memory.
constexpr size_t kKeptCapacity = 64 << 10;
constexpr size_t kTurnBytes = 4 << 20;  // One stream's fair share of a turn.

}  // namespace

void OutQueue::append_ref(Bytes referenced, Keepalive keepalive) {
  if (referenced.empty()) return;
  if (tail_.size() > tail_sent_) {
    segment_bytes_ += tail_.size() - tail_sent_;
    segments_.push_back({std::move(tail_), {}, {}, tail_sent_});
  }
  tail_.clear();
  tail_sent_ = 0;
  segment_bytes_ += referenced.size();
  segments_.push_back({{}, referenced, std::move(keepalive), 0});
}

void OutQueue::clear() {
  segments_.clear();
  segment_bytes_ = 0;
  tail_.clear();
  tail_sent_ = 0;
}

void OutQueue::advance(size_t n) {
  while (n > 0 && !segments_.empty()) {
    Segment& first = segments_.front();
    size_t step = std::min(n, first.rest().size());
    first.sent += step;
    segment_bytes_ -= step;
    n -= step;
    if (first.rest().empty()) segments_.pop_front();
  }
  tail_sent_ += n;
  if (tail_sent_ == tail_.size()) {
    if (tail_.capacity() > kKeptCapacity) {
      std::string().swap(tail_);
    } else {
      tail_.clear();
    }
    tail_sent_ = 0;
  } else if (tail_sent_ > kKeptCapacity && tail_sent_ > tail_.size() / 2) {
    tail_.erase(0, tail_sent_);
    tail_sent_ = 0;
  }
}

void OutQueue::note_sent(size_t n) {
  for (Segment& segment : segments_) {
    size_t step = std::min(n, segment.rest().size());
    segment.sent += step;
    segment_bytes_ -= step;
    n -= step;
  }
  tail_sent_ += n;
}

ssize_t OutQueue::send_once(int fd) {
  if (segments_.empty())
    return ::send(fd, tail_.data() + tail_sent_, tail_.size() - tail_sent_,
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  iovec parts[kMaxParts];
  size_t count = 0;
  auto it = segments_.begin();
  for (; it != segments_.end() && count < kMaxParts - 1; ++it) {
    Bytes rest = it->rest();
    // Segments that send_last() has sent are empty.
    if (!rest.empty()) parts[count++] = {const_cast<uint8_t*>(rest.data()), rest.size()};
  }
  if (it == segments_.end() && tail_.size() > tail_sent_)
    parts[count++] = {tail_.data() + tail_sent_, tail_.size() - tail_sent_};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

OutQueue::Sent OutQueue::send(int fd) {
  size_t sent = 0;
  while (!empty()) {
    if (sent >= kTurnBytes) return Sent::kBlocked;
    ssize_t n = send_once(fd);
    if (n >= 0) {
      advance(static_cast<size_t>(n));
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      return Sent::kBlocked;
    } else if (errno != EINTR) {
      return Sent::kError;
    }
  }
  return Sent::kAll;
}

OutQueue::Sent OutQueue::send_last(int fd) {
  while (!empty()) {
    ssize_t n = send_once(fd);
    if (n >= 0) {
      note_sent(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      return Sent::kBlocked;
    } else if (errno != EINTR) {
      return Sent::kError;
    }
  }
  return Sent::kAll;
}

}  // namespace rt::net
