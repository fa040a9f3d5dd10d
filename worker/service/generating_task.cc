// The half of an executing task that yields: its items go to the owner one by one, and it waits
// until they are taken.
#include <fmt/core.h>

#include "worker/core/generator_stream.h"
#include "worker/service/executing_task.h"
#include "worker/service/pump.h"

namespace rt::worker {

bool ExecutingTaskImpl::skip_item() {
  if (items_yielded_ >= task_->items_known) return false;
  WorkerLock lock(parts_.shared.mutex);
  ++items_yielded_;
  return true;
}

Status ExecutingTaskImpl::item(const ValueParts& value) {
  if (items_yielded_ >= kMaxItems)
    return make_error(Code::kResourceExhausted,
                      fmt::format("a generator yields at most {} items", kMaxItems));
  WorkerLock lock(parts_.shared.mutex);
  if (!task_->link || !task_->link->open)
    return make_error(Code::kUnavailable, "the caller of this generator is gone");
  if (value.kind == ValueKind::kError) reply_.set_error(encode_plain(value));
  std::string body;
  wire::Writer(body).fields(task_->seq, items_yielded_);
  append_return(lock, body, value, kFirstItemIndex + items_yielded_);
  ++items_yielded_;
  parts_.execution.frames().send(task_->link, wire::kItems, body, take_lent(), false);
  parts_.execution.flush_items(*task_->link);
  return {};
}

bool ExecutingTaskImpl::has_room() const {
  int64_t limit = task_->function->spec.generator_backpressure();
  if (limit > 0 && items_ahead() >= limit) return false;
  // A stream whose items are all taken goes on, whatever the other streams of the actor have left
  // untaken, so that streams cannot wait for each other in a circle.
  return limit != kSharedLimit || !parts_.execution.actor() || items_ahead() == 0 ||
         parts_.execution.items_ahead() <
             parts_.execution.actor_spec()->creation().generator_backpressure();
}

Waited ExecutingTaskImpl::wait_for_room() {
  // Items of dynamic generators are taken only at the end, so there is nothing to wait for.
  if (task_->function->spec.generator_backpressure() == 0 || num_returns() != kStreamingReturns)
    return Waited::kDone;
  WorkerLock lock(parts_.shared.mutex);
  if (has_room()) return Waited::kDone;
  task_->waits_for_consumer = true;
  const Waited waited = parts_.pump.wait_until(
      lock, -1,
      [this] {
        assert_locked();
        return has_room() || cancelled() || !task_->link->open || parts_.shared.stopping;
      },
      kLendsCpu);
  task_->waits_for_consumer = false;
  return waited;
}

}  // namespace rt::worker
