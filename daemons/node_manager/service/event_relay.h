// Delivers task events to the head. Batches are numbered, kept until the head acknowledges that
// they are in its history, and sent again after a reconnect. The head remembers the last number of
// each node and so discards duplicates. The number of a batch is in its field `row`. Numbers start
// at the wall-clock time, so that a restarted node-manager continues beyond the numbers of its
// predecessor.
//
// The queue is bounded: beyond `max_bytes` the oldest batches are dropped, and their events
// counted as dropped in a later batch. Threads: the loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "common/proto/head.pb.h"
#include "daemons/node_manager/service/head_link.h"

namespace rt::node {

class EventRelay {
 public:
  // `head` must outlive the relay.
  EventRelay(HeadLink& head, int64_t start_wall_us, int64_t max_bytes);
  ~EventRelay() { *alive_ = false; }

  void add(proto::TaskEventBatch batch);
  // Reports that so many events were recorded by a process and will never be sent.
  void lost(int64_t events);
  // To be called after each registration at the head: sends everything it has not acknowledged.
  void resend();

 private:
  static constexpr int kMostInFlight = 32;
  static constexpr int64_t kAckTimeoutUs = 30'000'000;
  void pump();
  void answered(int64_t number);
  void drop_oldest();

  HeadLink& head_;
  const int64_t max_bytes_;
  std::deque<proto::TaskEventBatch> kept_;  // oldest first, numbered without gaps
  int64_t first_number_;                    // number of kept_.front()
  int64_t next_number_;                     // number of the next batch to send
  int64_t bytes_ = 0, dropped_ = 0;         // size of kept_; events dropped since the last add()
  int in_flight_ = 0;
  uint64_t round_ = 0;  // number of resend() calls; replies of earlier rounds are ignored
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
