// The generators of this process's tasks, at their owner: items in, and word to the producers of
// how many were taken. GeneratorStreams decides; executing_task.h has the producer.
//
// All methods are called with the worker's mutex held, except next() and peek(), which take it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/core/generator_stream.h"
#include "worker/core/task.h"
#include "worker/service/link.h"
#include "worker/worker.h"

namespace rt::worker {

struct Return;

class Streams {
 public:
  // `impl` must outlive this object.
  explicit Streams(Worker::Impl& impl) : impl_(impl) {}
  // Forgets everything; to be called whenever there is a new table of references.
  void reset();

  // The stream of a task that is about to be submitted. Appends the consumer's end to `returns`
  // unless the items come all at once.
  void open(Task& task, std::vector<Ref>* returns);
  GeneratorStream* find(const TaskId& task) { return table_->find(task); }
  void on_items(const std::shared_ptr<Link>& link, Bytes body);
  // The task is over; `error` is its last item, null if it ended well.
  void end(Task* task, const Blob* error);
  // The same, with the task's own result.
  void complete(Task* task, std::span<const Return> returns, bool failed);
  // The consumer takes no more items.
  void dropped(const TaskId& task);

  // See Worker::next_item() and Worker::peek_item().
  Waited next(const Ref& stream, int64_t deadline_us, Ref* item);
  Worker::ItemState peek(const Ref& stream, Ref* item);

 private:
  // Tells the producer how many items were taken, when it is time.
  void acknowledge(GeneratorStream& stream);

  Worker::Impl& impl_;
  std::unique_ptr<GeneratorStreams> table_;
};

}  // namespace rt::worker
