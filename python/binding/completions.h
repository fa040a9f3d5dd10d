// References that become ready, as an event a Python thread or an event loop can wait for.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

bool add_completions(PyObject* module);  // CompletionQueue

}  // namespace rt::python
