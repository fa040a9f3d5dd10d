// References that become ready, as an event that a Python thread or an event loop can wait for.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

// Adds CompletionQueue.
bool add_completions(PyObject* module);

}  // namespace rt::python
