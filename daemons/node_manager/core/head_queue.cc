#include "daemons/node_manager/core/head_queue.h"

#include <utility>

namespace rt::node {

void HeadQueue::add(Send send) {
  keep(++last_number_, std::move(send));
  send_waiting();
}

void HeadQueue::open() {
  open_ = true;
  send_waiting();
}

void HeadQueue::keep(uint64_t number, Send send) {
  waiting_.emplace(number, std::move(send));
  if (waiting_.size() <= kMostWaiting) return;
  waiting_.erase(waiting_.begin());
  on_drop_(++dropped_);
}

void HeadQueue::send_waiting() {
  while (open_ && !waiting_.empty()) {
    auto next = waiting_.extract(waiting_.begin());
    const Send& send = next.mapped();
    send([this, alive = alive_, number = next.key(), send](bool delivered) {
      if (*alive && !delivered) keep(number, send);
    });
  }
}

}  // namespace rt::node
