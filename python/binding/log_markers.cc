#include "python/binding/log_markers.h"

#include <string>
#include <utility>

#include "python/binding/call.h"
#include "python/binding/executor.h"
#include "python/binding/runtime.h"

namespace rt::python {

void LogMarkers::let_calls_overlap(bool coroutines) {
  calls_ = coroutines ? Calls::kInCoroutines : Calls::kInThreads;
}

PyPtr LogMarkers::marker_of(const TaskId& id, int attempt) {
  if (!marker_ || id != marker_task_ || attempt != marker_attempt_) {
    marker_ = PyPtr(py_text(id.is_nil() ? ":task_id:"
                                        : ":task_id:" + id.hex() + " " + std::to_string(attempt)));
    marker_task_ = id;
    marker_attempt_ = attempt;
  }
  return PyPtr::borrow(marker_.get());
}

PyObject* LogMarkers::of_function() {
  if (!last_slot_) return nullptr;
  named_ = marked_ = last_slot_->may_write = true;
  return last_slot_->log_marker.get();
}

// Output of threads that user code started belongs to no task where calls overlap, else to the
// task that began last.
PyPtr LogMarkers::of_writer() {
  const worker::ExecutingTask* task = current_task();
  if (!task && calls_ == Calls::kInCoroutines) task = coroutine_task();
  if (task) return marker_of(task->id(), task->attempt());
  return calls_overlap() ? marker_of(TaskId::nil(), 0) : marker_of(last_task_, last_attempt_);
}

// Whether the exception that is set is the one that SIGTERM raises in whatever Python code the
// thread of a task runs (ray._private.ending.Terminated).
static bool ends_process() { return PyErr_ExceptionMatches(PyExc_SystemExit) != 0; }

// Writes the markers before a task that may need them: code that writes to the descriptors without
// Python must not appear under the name of a function, or among the lines of a task, that wrote
// before.
bool LogMarkers::task_begins(const worker::ExecutingTask& task, FunctionSlot& slot) {
  FunctionSlot* before = std::exchange(last_slot_, &slot);
  last_task_ = task.id();
  last_attempt_ = task.attempt();
  const bool another = !before || before->log_marker.get() != slot.log_marker.get();
  if (calls_overlap() ? !(another && named_)
                      : !(slot.may_write || marked_ || (another && (named_ || slot.has_written))))
    return true;
  PyPtr marker =
      calls_overlap() ? marker_of(TaskId::nil(), 0) : marker_of(task.id(), task.attempt());
  PyPtr args(Py_BuildValue("(OOnn)", slot.log_marker.get(), marker.get(),
                           reinterpret_cast<Py_ssize_t>(&slot),
                           reinterpret_cast<Py_ssize_t>(before)));
  PyPtr done = call_python("ray._private.worker_main", "task_begins", args.get());
  int named = false, marked = false, may_write = false, has_written = false;
  if (!done || !PyArg_ParseTuple(done.get(), "pppp", &named, &marked, &may_write, &has_written)) {
    if (ends_process()) return false;
    PyErr_WriteUnraisable(slot.log_marker.get());
  }
  named_ = named;
  marked_ = marked;
  slot.may_write = may_write;
  slot.has_written = has_written;
  return true;
}

// Looks whether the function wrote anything without a marker. Tasks that end sooner are not worth
// the call.
void LogMarkers::task_ended(FunctionSlot& slot, int64_t took_us, PyPtr* result) {
  constexpr int64_t kLongUs = 200;
  if (marked_ || calls_overlap() || (took_us >= 0 && took_us < kLongUs)) return;
  PyObject *type, *value, *traceback;
  // The exception of the task.
  PyErr_Fetch(&type, &value, &traceback);
  PyPtr args(Py_BuildValue("(n)", reinterpret_cast<Py_ssize_t>(&slot)));
  PyPtr done = call_python("ray._private.worker_main", "wrote_unmarked", args.get());
  slot.may_write = done && done.get() == Py_True;
  if (!done && ends_process()) {
    *result = PyPtr();
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
    return;
  }
  if (!done) PyErr_WriteUnraisable(slot.log_marker.get());
  PyErr_Restore(type, value, traceback);
}

bool LogMarkers::flush_open_line() {
  if (!std::exchange(open_line_, false)) return true;
  PyPtr none(PyTuple_New(0));
  PyPtr done = call_python("ray._private.worker_main", "flush_streams", none.get());
  if (done) return true;
  if (ends_process()) return false;
  PyErr_WriteUnraisable(nullptr);
  return true;
}

}  // namespace rt::python
