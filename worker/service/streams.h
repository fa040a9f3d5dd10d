// The generators of this process's tasks, at their owner: items in, and word to the producers of
// how many were taken. GeneratorStreams decides; generating_task.cc has the producer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/core/generator_stream.h"
#include "worker/core/task.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/worker.h"

namespace rt::worker {

class Objects;
class Pump;
class Results;
struct Return;

class Streams {
 public:
  // All of these must outlive this object.
  Streams(Objects& objects, Results& results, Pump& pump, const std::atomic<bool>& stopping);
  ~Streams();
  // Forgets everything; to be called whenever there is a new table of references.
  void reset() REQUIRES(worker_mutex);

  // The stream of a task that is about to be submitted. Appends the consumer's end to `returns`
  // unless the items come all at once.
  void open(Task& task, std::vector<Ref>* returns) REQUIRES(worker_mutex);
  GeneratorStream* find(const TaskId& task) REQUIRES(worker_mutex) { return table_->find(task); }
  void on_items(const std::shared_ptr<Link>& link, Bytes body) REQUIRES(worker_mutex);
  // The task is over; `error` is its last item, null if it ended well.
  void end(Task* task, const Blob* error) REQUIRES(worker_mutex);
  // The same, with the task's own result.
  void complete(Task* task, std::span<const Return> returns, bool failed) REQUIRES(worker_mutex);
  // The consumer takes no more items.
  void dropped(const TaskId& task) REQUIRES(worker_mutex);

  // See Worker::next_item(), which releases the lock while it waits, and Worker::peek_item().
  Waited next(WorkerLock& lock, const Ref& stream, int64_t deadline_us, Ref* item)
      REQUIRES(worker_mutex);
  Worker::ItemState peek(const Ref& stream, Ref* item) REQUIRES(worker_mutex);

 private:
  // Tells the producer how many items were taken, when it is time.
  void acknowledge(GeneratorStream& stream) REQUIRES(worker_mutex);

  Objects& objects_;
  Results& results_;
  Pump& pump_;
  const std::atomic<bool>& stopping_;
  std::unique_ptr<GeneratorStreams> table_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
