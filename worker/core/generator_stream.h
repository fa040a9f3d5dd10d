// The items of generator tasks (num_returns -1 and -2), at their owner: what has arrived, what was
// taken, how far the producer may go on.
//
//   open() -> arrive()* -> end()        by the task, over all its attempts: a repeated attempt is
//   told how many items are here already
//             take()*   -> drop()       by the consumer; the record goes when both have come to
//             their end
//
// Items wait here until they are taken: unbounded, unless the function was given a limit
// (TaskTemplate.generator_backpressure). An item that somebody waits for before it arrived has an
// entry already: peek() makes it.
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

inline constexpr int32_t kDynamicReturns = -1, kStreamingReturns = -2;  // TaskTemplate.num_returns
inline constexpr uint32_t kFirstItemIndex = 2;  // of the object ids; the task's own result has 1
inline constexpr uint32_t kStreamIndex =
    0;  // of the consumer's end: its last reference ends the stream
inline constexpr uint32_t kMaxItems = UINT32_MAX - kFirstItemIndex;
inline constexpr uint32_t kAllItems = UINT32_MAX;  // taken: nobody counts any more
// TaskTemplate.generator_backpressure of an actor's method: the limit is that of all streams
// together (ActorSpec.creation has it).
inline constexpr int64_t kSharedLimit = -1;

class GeneratorStream {
 public:
  enum class Arrival {
    kItem,
    kUnwanted,
    kRefused
  };  // kRefused: not the next one, a peer's mistake
  enum class Next { kItem, kPending, kEnd };

  GeneratorStream(RefTable& refs, const TaskId& task, int64_t limit)
      : refs_(refs), task_(task), limit_(limit) {}

  // By the task. kItem: `item` is the entry to fill.
  Arrival arrive(uint32_t index, Ref* item);
  // The task has ended, with an error: returns the entry for it, one more item. Empty when nobody
  // will take it.
  Ref end_with_error();
  // ... without one: returns the entry that somebody waits for and that will not come, or an empty
  // ref.
  Ref end();
  // Its user cancelled the task: what was not taken is given up, only the error is still to come.
  void cancel();

  // By the consumer. Removes the item, if it is here.
  Next take(Ref* item);
  // Looks at the next one. kPending: `item` becomes ready with it or with the end.
  Next peek(Ref* item);
  std::vector<Ref> take_all();

  // How many items the producer is to be told were taken, when it is time to tell.
  std::optional<uint32_t> acknowledge();

  const TaskId& task() const { return task_; }
  uint32_t received() const { return received_; }
  uint32_t taken() const { return dropped_ ? kAllItems : taken_; }
  bool ended() const { return ended_; }
  bool has_item() const { return !items_.empty(); }
  void check_invariants() const;

  // Where the items come from: for acknowledgements. Set by the service.
  std::weak_ptr<Link> producer;
  uint32_t seq = 0;

 private:
  friend class GeneratorStreams;
  Ref next_entry();

  RefTable& refs_;
  const TaskId task_;
  const int64_t limit_;
  std::deque<Ref> items_;  // arrived and not taken
  Ref pending_;            // of the item after the last one that arrived: somebody waits for it
  uint32_t received_ = 0;
  uint32_t taken_ = 0;  // by the consumer, or given up
  uint32_t acknowledged_ = 0;
  bool ended_ = false, dropped_ = false, cancelled_ = false;
};

class GeneratorStreams {
 public:
  explicit GeneratorStreams(RefTable& refs) : refs_(refs) {}

  GeneratorStream& open(const TaskId& task, int64_t limit);
  GeneratorStream* find(const TaskId& task);  // null: no such stream, or both ends are done with it
  // After end() or end_with_error(); `streaming` says that there is a consumer, who keeps the
  // record.
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
