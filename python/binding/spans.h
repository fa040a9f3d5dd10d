// Spans of the timeline that RAY_PROFILING asks for: how long calls of this process take. Without
// RAY_PROFILING a call pays for one branch.
#pragma once

#include "common/base/clock.h"
#include "python/binding/py.h"
#include "python/binding/runtime.h"

namespace rt::python {

// Records the span of a call that began at start_us (wall clock, us) and has just ended. When an
// exception is pending, the call failed, and the exception goes into the span.
void record_call(const char* type, int64_t start_us);

// Runs and records `call`. Callers capture copies of their arguments, not references, so that the
// arguments stay in registers where nothing is recorded.
template <class Call>
[[gnu::noinline]] PyObject* record(const char* type, Call call) {
  const int64_t start_us = wall_now_us();
  PyObject* result = call();
  record_call(type, start_us);
  return result;
}

// Adds is_profiling() and record_span().
bool add_spans(PyObject* module);

}  // namespace rt::python
