// Generators in workers: the items that they yield are sent one by one.
#include "python/binding/executor.h"
#include "python/binding/runtime.h"
#include "python/binding/serialize.h"
#include "worker/core/generator_stream.h"

namespace rt::python {

// Sends an item, unless the caller has it from an earlier attempt. False with a Python error.
bool PythonExecutor::yield_item(worker::ExecutingTask& task, PyObject* item) {
  if (task.skip_item()) return true;
  Serialized value;
  if (!value.encode(item, "the yielded value")) return false;
  Status sent;
  {
    GilRelease release(value.is_large());
    sent = task.item(value.parts);
  }
  return sent || raise(sent.error()) != nullptr;
}

// Waits until the next item is wanted. False with KeyboardInterrupt when the task was cancelled,
// or with the exception of a signal handler.
bool PythonExecutor::wait_for_room(worker::ExecutingTask& task) {
  for (;;) {
    worker::Waited waited = worker::Waited::kDone;
    if (task.spec().generator_backpressure() != 0) {
      GilRelease release;
      waited = task.wait_for_room();
    }
    if (task.cancelled()) return PyErr_SetNone(PyExc_KeyboardInterrupt), false;
    if (waited == worker::Waited::kDone) return true;
    if (PyErr_CheckSignals() < 0) return false;
  }
}

void PythonExecutor::yield_all(worker::ExecutingTask& task, PyObject* generator) {
  const bool interruptible = !task.actor_spec();
  if (!PyIter_Check(generator)) {
    const char* kind = task.num_returns() == worker::kDynamicReturns ? "dynamic" : "streaming";
    PyErr_Format(
        PyExc_ValueError,
        "Functions with num_returns=\"%s\" must return a generator, and this one returned a %s.",
        kind, Py_TYPE(generator)->tp_name);
    return fail_with_exception(task);
  }
  for (bool more = true; more;) {
    PyPtr item;
    if (!interruptible || enter_user_code(task)) {
      item = PyPtr(PyIter_Next(generator));
      if (g_runtime.forked) end_forked_twin();
    } else {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
    if (interruptible) interrupt_.leave();
    more = item && yield_item(task, item.get());
    item.reset();
    more = more && wait_for_room(task);
  }
  task.executed();
  // The call could not be interrupted.
  if (task.actor_spec() && task.cancelled()) return PyErr_Clear(), fail_cancelled(task);
  end_of_items(task);
}

// The generator has ended, by the current Python error if there is one.
void PythonExecutor::end_of_items(worker::ExecutingTask& task) {
  const bool dynamic = task.num_returns() == worker::kDynamicReturns;
  if (PyErr_Occurred()) {
    const auto failure = describe_failure(task);
    if (!failure) return;
    worker::ValueParts parts = error_parts(failure->error);
    if (!dynamic || failure->retriable || task.cancelled())
      return task.fail(parts, failure->retriable);
    if (Status sent = task.item(parts); !sent) return task.fail(parts, false);
  }
  if (!log_markers_.flush_open_line()) return fail_with_exception(task);
  worker::ValueParts parts;
  parts.kind = dynamic ? worker::ValueKind::kPickle : worker::ValueKind::kNone;
  if (dynamic) parts.inband = {&kRefGenerator, 1};
  task.finish({&parts, 1});
}

}  // namespace rt::python
