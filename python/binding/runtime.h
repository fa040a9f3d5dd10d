// The worker of this process. One at a time: ray.init() or the worker's main starts it,
// ray.shutdown() ends it.
//
// `session` names the connection: templates, actor handles and functions remember the session they
// were made in and are remade when it has changed. All of it is guarded by the GIL.
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

struct Runtime {
  // Shared with calls that wait without the GIL: ray.shutdown() in another thread must not free it
  // under them.
  std::shared_ptr<worker::Worker> worker;
  uint64_t session = 0;  // 0: not connected
  uint64_t last_session = 0;
  bool profiles = false;  // see spans.h
  bool forked = false;    // a child of a connected process: it has none of its threads and must not
                          // use its connections
};
extern Runtime g_runtime;

// Holds the worker across a call that releases the GIL.
using WorkerHold = std::shared_ptr<worker::Worker>;
inline WorkerHold hold_worker() { return g_runtime.worker; }

// Frees the GIL for one call of the worker (unless `free` is false).
class WithoutGil {
 public:
  explicit WithoutGil(bool free = true) : worker_(free ? hold_worker() : nullptr), release_(free) {}

 private:
  WorkerHold worker_;
  GilRelease
      release_;  // ends first: a worker that was stopped meanwhile is destroyed with the GIL held
};

// The worker, after auto-init when there is none; null with a Python error.
worker::Worker* connected();

// False with a Python error when that session is over. To be asked wherever Python code may have
// run since the worker was looked up (pickling does, and lets other threads run): what it ran may
// have called ray.shutdown().
bool still_in(uint64_t session);

// Sets the Python exception of an error of ours (ray.exceptions by code) and returns null.
PyObject* raise(const Error& error);

bool add_runtime(PyObject* module);  // start(), stop(), session(), context(), log lines

}  // namespace rt::python
