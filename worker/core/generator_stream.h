// The items of generator tasks (num_returns -1 and -2), at their owner: which have arrived, which
// were taken, and how far the producer may go on.
//
//   open() -> arrive()* -> end()    by the task, over all its attempts. A repeated attempt is told
//                                   how many items have arrived already.
//   take()* -> drop()               by the consumer.
//
// The record is removed when both have come to their end. Items wait here until they are taken, in
// any number unless the function has a limit (TaskTemplate.generator_backpressure). peek() makes
// the entry of an item that has not arrived, so that the consumer can wait for it.
//
// Pure: guarded by the worker's mutex.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "worker/core/ref_table.h"

namespace rt::worker {

struct Link;

// Values of TaskTemplate.num_returns.
inline constexpr int32_t kDynamicReturns = -1, kStreamingReturns = -2;
// The index in object ids of the first item; the task's own result has index 1.
inline constexpr uint32_t kFirstItemIndex = 2;
// The index of the consumer's end, whose last reference ends the stream.
inline constexpr uint32_t kStreamIndex = 0;
inline constexpr uint32_t kMaxItems = UINT32_MAX - kFirstItemIndex;
// As a number of items taken: the consumer is gone, and all further items count as taken.
inline constexpr uint32_t kAllItems = UINT32_MAX;
// TaskTemplate.generator_backpressure of an actor's method whose limit applies to all streams of
// the actor together; ActorSpec.creation has the limit.
inline constexpr int64_t kSharedLimit = -1;

class GeneratorStream {
 public:
  // kRefused: the item is not the next one, which is a mistake of the peer.
  enum class Arrival { kItem, kUnwanted, kRefused };
  enum class Next { kItem, kPending, kEnd };

  GeneratorStream(RefTable& refs, const TaskId& task, int64_t limit)
      : refs_(refs), task_(task), limit_(limit) {}

  // The task yielded an item. kItem: `item` is the entry to fill.
  Arrival arrive(uint32_t index, Ref* item);
  // The task has ended with an error: returns the entry for the error, which is one more item, or
  // an empty ref when nobody will take it.
  Ref end_with_error();
  // The task has ended without an error: returns the entry of an item that somebody waits for and
  // that will not come, or an empty ref.
  Ref end();
  // The user cancelled the task: items that were not taken are given up, and only the error is
  // still to come.
  void cancel();

  // The consumer takes the next item, if it has arrived.
  Next take(Ref* item);
  // The consumer looks at the next item. kPending: `item` becomes ready with the item or with the
  // end.
  Next peek(Ref* item);
  std::vector<Ref> take_all();

  // A repeated attempt was sent to `link` as its task `seq`, and was told that `taken` items are
  // taken: it may wait before its first new item arrives, and is told of those taken from now on.
  void attempt_sent(std::weak_ptr<Link> link, uint32_t seq, uint32_t taken);
  // The number of items taken, when it is time to tell the producer.
  std::optional<uint32_t> acknowledge();

  const TaskId& task() const { return task_; }
  uint32_t received() const { return received_; }
  uint32_t taken() const { return dropped_ ? kAllItems : taken_; }
  bool ended() const { return ended_; }
  bool has_item() const { return !items_.empty(); }
  void check_invariants() const;

  // The connection that items come from and the task's sequence number there, for
  // acknowledgements. Set by the service.
  std::weak_ptr<Link> producer;
  uint32_t seq = 0;

 private:
  friend class GeneratorStreams;
  Ref next_entry();

  RefTable& refs_;
  const TaskId task_;
  const int64_t limit_;
  std::deque<Ref> items_;  // Arrived and not taken.
  // The item after the last one that has arrived, when somebody waits for it.
  Ref pending_;
  uint32_t received_ = 0;
  uint32_t taken_ = 0;  // Taken by the consumer or given up.
  uint32_t acknowledged_ = 0;
  bool ended_ = false, dropped_ = false, cancelled_ = false;
};

class GeneratorStreams {
 public:
  explicit GeneratorStreams(RefTable& refs);
  ~GeneratorStreams();

  GeneratorStream& open(const TaskId& task, int64_t limit);
  // Null when there is no such stream, or both ends have finished.
  GeneratorStream* find(const TaskId& task);
  // To be called after end() or end_with_error(). `streaming` says that there is a consumer, for
  // whom the record is kept until drop().
  void ended(const TaskId& task, bool streaming);
  // The consumer's last reference is gone.
  void drop(const TaskId& task);
  size_t size() const { return streams_.size(); }
  void check_invariants() const;

 private:
  RefTable& refs_;
  std::unordered_map<TaskId, std::unique_ptr<GeneratorStream>> streams_;
};

}  // namespace rt::worker
