// ray.get, ray.put and ray.wait on the worker.
#pragma once

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

// The Python value of a ready reference; null with the exception of the task or of the system.
// `since_us`: see worker::Worker.
PyObject* value_object(worker::Worker& worker, const worker::Ref& ref, int64_t since_us);

// Converts a timeout in seconds to a deadline on the steady clock; None and -1 give -1, for no
// deadline. False with a Python error.
bool deadline_of(PyObject* timeout, int64_t* deadline_us);

// Waits with the GIL released, and runs Python's signal handlers in between. False with a Python
// error.
template <class Wait>
bool wait_with_signals(Wait wait, worker::Waited* waited) {
  for (;;) {
    {
      GilRelease release;
      *waited = wait();
    }
    if (*waited != worker::Waited::kInterrupted) return true;
    if (PyErr_CheckSignals() < 0) return false;
  }
}

// Whether this thread runs an actor's event loop.
bool in_event_loop();

bool add_objects(PyObject* module);

}  // namespace rt::python
