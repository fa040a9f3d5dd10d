// Spans of the timeline that RAY_PROFILING asks for: how long calls of this process take. Without
// it a call pays for one branch.
#pragma once

#include "common/base/clock.h"
#include "python/binding/py.h"
#include "python/binding/runtime.h"

namespace rt::python {

// Of what a call did since then; it failed when an exception is pending, and that is in the span.
void record_call(const char* type, int64_t start_us);

// Calls are handed over with copies of their arguments, not their addresses: those stay in
// registers where nothing is recorded.
template <class Call>
[[gnu::noinline]] PyObject* record(const char* type, Call call) {
  const int64_t start_us = wall_now_us();
  PyObject* result = call();
  record_call(type, start_us);
  return result;
}

bool add_spans(PyObject* module);  // is_profiling(), record_span()

}  // namespace rt::python
