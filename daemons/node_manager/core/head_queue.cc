#include "daemons/node_manager/core/head_queue.h"

#include <utility>

namespace rt::node {

HeadQueue::HeadQueue(std::function<void(int64_t dropped)> on_drop) : on_drop_(std::move(on_drop)) {}

void HeadQueue::add(Send send, Until until) {
  Request request{std::move(send), std::nullopt};
  if (until == Until::kNextRegistration) request.registration = registrations_;
  keep(++last_number_, std::move(request));
  send_waiting();
}

void HeadQueue::registering() {
  ++registrations_;
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.registration.has_value(); });
}

void HeadQueue::open() {
  open_ = true;
  send_waiting();
}

void HeadQueue::keep(uint64_t number, Request request) {
  if (request.registration && *request.registration != registrations_) return;
  waiting_.emplace(number, std::move(request));
  if (waiting_.size() <= kMostWaiting) return;
  waiting_.erase(waiting_.begin());
  on_drop_(++dropped_);
}

void HeadQueue::send_waiting() {
  while (open_ && !waiting_.empty()) {
    auto next = waiting_.extract(waiting_.begin());
    const Request& request = next.mapped();
    request.send([this, alive = alive_, number = next.key(), request](bool delivered) {
      if (*alive && !delivered) keep(number, request);
    });
  }
}

}  // namespace rt::node
