#include "worker/core/generator_stream.h"

#include <utility>

#include "common/base/status.h"

namespace rt::worker {

GeneratorStreams::GeneratorStreams(RefTable& refs) : refs_(refs) {}

GeneratorStreams::~GeneratorStreams() = default;

Ref GeneratorStream::next_entry() {
  if (pending_) return std::move(pending_);
  return Ref(refs_.create(make_object_id(task_, kFirstItemIndex + received_)));
}

GeneratorStream::Arrival GeneratorStream::arrive(uint32_t index, Ref* item) {
  if (ended_ || index != received_ || index >= kMaxItems) return Arrival::kRefused;
  if (dropped_ || cancelled_) {
    ++received_;
    ++taken_;
    return Arrival::kUnwanted;
  }
  *item = next_entry();
  ++received_;
  items_.push_back(*item);
  return Arrival::kItem;
}

Ref GeneratorStream::end_with_error() {
  ended_ = true;
  if (dropped_) return {};
  Ref item = next_entry();
  ++received_;
  items_.push_back(item);
  return item;
}

Ref GeneratorStream::end() {
  ended_ = true;
  return std::move(pending_);
}

void GeneratorStream::cancel() {
  if (ended_) return;
  cancelled_ = true;
  taken_ += static_cast<uint32_t>(items_.size());
  items_.clear();
}

GeneratorStream::Next GeneratorStream::take(Ref* item) {
  if (items_.empty()) return ended_ ? Next::kEnd : Next::kPending;
  *item = std::move(items_.front());
  items_.pop_front();
  ++taken_;
  return Next::kItem;
}

GeneratorStream::Next GeneratorStream::peek(Ref* item) {
  if (!items_.empty()) {
    *item = items_.front();
    return Next::kItem;
  }
  if (ended_) return Next::kEnd;
  if (!pending_) pending_ = next_entry();
  *item = pending_;
  return Next::kPending;
}

std::vector<Ref> GeneratorStream::take_all() {
  std::vector<Ref> all(items_.begin(), items_.end());
  taken_ += static_cast<uint32_t>(items_.size());
  items_.clear();
  return all;
}

void GeneratorStream::attempt_sent(std::weak_ptr<Link> link, uint32_t seq, uint32_t taken) {
  producer = std::move(link);
  this->seq = seq;
  acknowledged_ = taken;
}

// A producer with a limit of its own is not told of each item, but when it may be waiting or half
// of its limit has been taken.
std::optional<uint32_t> GeneratorStream::acknowledge() {
  uint32_t taken = this->taken();
  // A producer that has ended waits for nobody.
  if (limit_ == 0 || ended_ || taken == acknowledged_) return {};
  if (limit_ > 0 && taken != kAllItems) {
    int64_t limit = limit_;
    bool may_wait = static_cast<int64_t>(received_) - acknowledged_ >= limit;
    if (!may_wait && 2 * static_cast<int64_t>(taken - acknowledged_) < limit) return {};
  }
  acknowledged_ = taken;
  return taken;
}

void GeneratorStream::check_invariants() const {
  RT_CHECK(received_ == taken_ + items_.size());
  RT_CHECK(!(ended_ && pending_));
  RT_CHECK(!(dropped_ && !items_.empty()));
  // After a cancellation the last item may have the id that somebody waited for before the earlier
  // items were given up.
  for (size_t i = 0; i < items_.size() && !cancelled_; ++i)
    RT_CHECK(items_[i].id() ==
             make_object_id(task_, kFirstItemIndex + taken_ + static_cast<uint32_t>(i)));
}

GeneratorStream& GeneratorStreams::open(const TaskId& task, int64_t limit) {
  auto& slot = streams_[task];
  slot = std::make_unique<GeneratorStream>(refs_, task, limit);
  return *slot;
}

GeneratorStream* GeneratorStreams::find(const TaskId& task) {
  auto it = streams_.find(task);
  return it == streams_.end() ? nullptr : it->second.get();
}

void GeneratorStreams::ended(const TaskId& task, bool streaming) {
  auto it = streams_.find(task);
  if (it == streams_.end()) return;
  if (!streaming || it->second->dropped_) streams_.erase(it);
}

void GeneratorStreams::drop(const TaskId& task) {
  auto it = streams_.find(task);
  if (it == streams_.end()) return;
  GeneratorStream& stream = *it->second;
  stream.taken_ += static_cast<uint32_t>(stream.items_.size());
  stream.items_.clear();
  stream.pending_.reset();
  stream.dropped_ = true;
  if (stream.ended_) streams_.erase(it);
}

void GeneratorStreams::check_invariants() const {
  for (const auto& [task, stream] : streams_) {
    RT_CHECK(stream->task_ == task);
    stream->check_invariants();
  }
}

}  // namespace rt::worker
