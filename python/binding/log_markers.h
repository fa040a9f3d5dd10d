// The markers in a worker's log files, which say which task and which function wrote what follows.
//
// One per executor; guarded by the GIL. A marker is written only before output that may come: the
// files of a function that never writes have none.
#pragma once

#include <cstdint>

#include "common/base/ids.h"
#include "python/binding/function_slot.h"
#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

class LogMarkers {
 public:
  // From now on calls overlap, so that output belongs to no task unless the thread that writes, or
  // the coroutine if the calls are `coroutines`, runs one.
  void let_calls_overlap(bool coroutines);
  bool calls_overlap() const { return calls_ != Calls::kOneByOne; }

  // To be called before the task begins. Writes the markers if the task may need them. False if
  // SIGTERM came meanwhile, whose exception is set.
  bool task_begins(const worker::ExecutingTask& task, FunctionSlot& slot);
  // To be called after the task has ended. If SIGTERM comes meanwhile, its exception replaces
  // `result`.
  void task_ended(FunctionSlot& slot, int64_t took_us, PyPtr* result);

  // Text without a newline was printed, which stays in Python's buffer.
  void note_open_line() { open_line_ = true; }
  // To be called before the answer of a task leaves, so that who has the answer finds such text in
  // the log files. False if SIGTERM comes meanwhile, whose exception is set.
  bool flush_open_line();

  // For code that is about to write to the logs: the marker of the function that began last (null:
  // none has), and the marker of the task that the output belongs to.
  PyObject* of_function();
  PyPtr of_writer();
  // The task that began last.
  const TaskId& last_task() const { return last_task_; }

 private:
  enum class Calls { kOneByOne, kInThreads, kInCoroutines };

  PyPtr marker_of(const TaskId& id, int attempt);

  Calls calls_ = Calls::kOneByOne;
  // The function and the task that began last.
  FunctionSlot* last_slot_ = nullptr;
  TaskId last_task_;
  int last_attempt_ = 0;
  bool named_ = false;  // The log files name a function.
  // The log files name a task, so the next one must replace the marker.
  bool marked_ = false;
  bool open_line_ = false;
  // The marker that was made last, and of what.
  PyPtr marker_;
  TaskId marker_task_;
  int marker_attempt_ = -1;
};

}  // namespace rt::python
