#include "daemons/node_manager/service/event_relay.h"

#include <algorithm>
#include <utility>

namespace rt::node {
namespace {

int64_t size_of(const proto::TaskEventBatch& batch) {
  return static_cast<int64_t>(batch.packed().size() + batch.digest().size()) + 100;
}

}  // namespace

EventRelay::EventRelay(HeadLink& head, int64_t start_wall_us, int64_t max_bytes)
    : head_(head),
      max_bytes_(max_bytes),
      first_number_(start_wall_us),
      next_number_(start_wall_us) {}

void EventRelay::add(proto::TaskEventBatch batch) {
  batch.set_row(first_number_ + static_cast<int64_t>(kept_.size()));
  batch.set_dropped(batch.dropped() + std::exchange(dropped_, 0));
  bytes_ += size_of(batch);
  kept_.push_back(std::move(batch));
  while (bytes_ > max_bytes_ && kept_.size() > 1) drop_oldest();
  pump();
}

void EventRelay::lost(int64_t events) {
  proto::TaskEventBatch none;
  none.set_dropped(events);
  add(std::move(none));
}

void EventRelay::resend() {
  ++round_;
  in_flight_ = 0;
  next_number_ = first_number_;
  pump();
}

void EventRelay::drop_oldest() {
  bytes_ -= size_of(kept_.front());
  dropped_ += kept_.front().count() + kept_.front().dropped();
  kept_.pop_front();
  ++first_number_;
  next_number_ = std::max(next_number_, first_number_);
}

void EventRelay::pump() {
  rpc::Connection* connection = head_.connection();
  const int64_t end = first_number_ + static_cast<int64_t>(kept_.size());
  for (; connection && in_flight_ < kMostInFlight && next_number_ < end; ++next_number_) {
    ++in_flight_;
    rpc::call(
        *connection, &proto::HeadService::Stub::AddTaskEvents,
        kept_[static_cast<size_t>(next_number_ - first_number_)], kAckTimeoutUs,
        [this, alive = alive_, round = round_, number = next_number_](Result<proto::Empty> reply) {
          if (!*alive || round != round_) return;
          if (!reply && reply.error().code == Code::kUnavailable) return;  // resend() follows
          if (!reply && reply.error().code == Code::kTimeout) return resend();
          answered(number);  // also for other errors: the head has counted what it could not keep
        });
  }
}

// The head replies in order, so a reply acknowledges all batches up to `number`.
void EventRelay::answered(int64_t number) {
  --in_flight_;
  for (; first_number_ <= number && !kept_.empty(); ++first_number_) {
    bytes_ -= size_of(kept_.front());
    kept_.pop_front();
  }
  pump();
}

}  // namespace rt::node
