// The worker of this process. There is one at a time: ray.init() or the main program of a worker
// starts it, ray.shutdown() ends it.
//
// `session` names the connection. Templates, actor handles and functions remember the session that
// they were made in, and are made again when it has changed. All of this is guarded by the GIL.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

struct Runtime {
  // Shared with calls that wait without the GIL, because ray.shutdown() in another thread must not
  // free the worker while they use it.
  std::shared_ptr<worker::Worker> worker;
  uint64_t session = 0;  // 0: not connected.
  uint64_t last_session = 0;
  bool profiles = false;  // See spans.h.
  // This is a child forked from a connected process. It has none of that process's threads and
  // must not use its connections.
  bool forked = false;
};
extern Runtime g_runtime;

// Keeps the worker alive across a call that releases the GIL.
using WorkerHold = std::shared_ptr<worker::Worker>;
inline WorkerHold hold_worker() { return g_runtime.worker; }

// Releases the GIL for one call of the worker (unless `free` is false).
class WithoutGil {
 public:
  explicit WithoutGil(bool free = true) : worker_(free ? hold_worker() : nullptr), release_(free) {}

 private:
  WorkerHold worker_;
  // Destroyed first, so that a worker that was stopped in the meantime is destroyed with the GIL
  // held.
  GilRelease release_;
};

// The worker, after auto-init when there is none; null with a Python error.
worker::Worker* connected();

// Whether `session` is still current; false with a Python error when it is over. Must be checked
// wherever Python code may have run since the worker was looked up, because that code may have
// called ray.shutdown(). Pickling runs Python code and lets other threads run.
bool still_in(uint64_t session);

// Sets the Python exception for an error of the worker (ray.exceptions by code) and returns null.
PyObject* raise(const Error& error);

// Adds start(), stop(), session(), context() and the functions for log lines.
bool add_runtime(PyObject* module);

}  // namespace rt::python
