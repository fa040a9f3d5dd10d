// ray.get, ray.put, ray.wait on the worker.
#pragma once

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

// The Python value of a ready reference; null with the task's exception (or ours).
PyObject* value_object(worker::Worker& worker, const worker::Ref& ref);

// Whether this thread runs an actor's event loop.
bool in_event_loop();

bool add_objects(PyObject* module);

}  // namespace rt::python
