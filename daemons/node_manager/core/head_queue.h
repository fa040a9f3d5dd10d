// Requests that the head must not miss. They are sent in the order in which they were added, now or
// when the node is registered again, and repeated if the connection breaks before the answer. The
// head may therefore see one twice, unless it is one that a registration replaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace rt::node {

class HeadQueue {
 public:
  // Beyond so many waiting requests the oldest is dropped.
  static constexpr size_t kMostWaiting = 10'000;

  // To be called once: `delivered` is false if the request must be repeated. An answer that is an
  // error of the head's own counts as delivered.
  using Done = std::function<void(bool delivered)>;
  // Sends the request over the connection that is open, and calls `done` later.
  using Send = std::function<void(Done done)>;

  enum class Until {
    kDelivered,
    // The next registration says what the head must know then, so that the request would be about
    // something else: it is dropped.
    kNextRegistration,
  };

  // `on_drop` is told how many requests have been dropped so far.
  explicit HeadQueue(std::function<void(int64_t dropped)> on_drop);
  // Answers that come afterwards have no effect.
  ~HeadQueue() { *alive_ = false; }
  HeadQueue(const HeadQueue&) = delete;
  HeadQueue& operator=(const HeadQueue&) = delete;

  void add(Send send, Until until = Until::kDelivered);
  // A registration has been filled: it says what the node knows.
  void registering();
  // The node is registered, and what waits is sent; or the connection is gone.
  void open();
  void close() { open_ = false; }

 private:
  struct Request {
    Send send;
    std::optional<uint64_t> registration;  // the one that it was made after; absent: kDelivered
  };

  void keep(uint64_t number, Request request);
  void send_waiting();

  const std::function<void(int64_t)> on_drop_;
  std::map<uint64_t, Request> waiting_;  // by number: one that is repeated takes its old place
  uint64_t last_number_ = 0;
  uint64_t registrations_ = 0;
  int64_t dropped_ = 0;
  bool open_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
