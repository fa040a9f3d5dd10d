// A function, class or method as an executor has loaded it.
#pragma once

#include <string>

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

// A template as loaded in this process; kept in ExecutingTask::loaded_function(). Guarded by the
// GIL.
struct FunctionSlot final : worker::LoadedFunction {
  FunctionSlot() = default;
  // The worker may end in a thread without the GIL, or after the interpreter: what was loaded stays
  // then.
  ~FunctionSlot() override {
    if (Py_IsInitialized() && PyGILState_Check()) return;
    for (PyPtr* kept : {&callable, &log_marker, &retry_types}) (void)kept->release();
  }

  // The function, the class, or the method of the actor.
  PyPtr callable;
  // ":task_name:f", written before the first output of this function.
  PyPtr log_marker;
  // The function may write to the log files: it is not known yet, or it did in its last run.
  bool may_write = true;
  // It has written at least once.
  bool has_written = false;
  // A tuple of classes; null means all.
  PyPtr retry_types;
  // "ray::f" or "ray::Class.method".
  std::string title;
  int omp_threads = 1;  // 0: the number stays as it is.
  // The GPUs of a call are made visible before it runs.
  bool shows_gpus = false;
};

}  // namespace rt::python
