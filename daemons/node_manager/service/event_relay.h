// Task events on their way to the head: numbered, kept until the head says that they are in its
// history, and sent again when it comes back. The head knows the last number of each node, so that
// none is there twice. A batch's number is in its field `row`; numbers go on from the wall clock,
// so that those of a node-manager that was started again are beyond those of the one before.
//
// Bounded: while the head is away the oldest go first and are counted. Threads: the loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "common/proto/head.pb.h"
#include "daemons/node_manager/service/head_link.h"

namespace rt::node {

class EventRelay {
 public:
  // `head` outlives the relay.
  EventRelay(HeadLink& head, int64_t start_wall_us, int64_t max_bytes)
      : head_(head),
        max_bytes_(max_bytes),
        first_number_(start_wall_us),
        next_number_(start_wall_us) {}
  ~EventRelay() { *alive_ = false; }

  void add(proto::TaskEventBatch batch);
  // That many were recorded and will not come.
  void lost(int64_t events);
  // The head is there (again): what it has not acknowledged is sent.
  void resend();

 private:
  static constexpr int kMostInFlight = 32;
  static constexpr int64_t kAnswerUs = 30'000'000;
  void pump();
  void answered(int64_t number);
  void drop_oldest();

  HeadLink& head_;
  const int64_t max_bytes_;
  std::deque<proto::TaskEventBatch> kept_;  // oldest first, numbered without gaps
  int64_t first_number_;                    // of kept_.front()
  int64_t next_number_;                     // to be sent
  int64_t bytes_ = 0, dropped_ = 0;
  int in_flight_ = 0;
  uint64_t round_ = 0;  // answers of earlier ones are not waited for
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
