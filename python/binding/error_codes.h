// The numbers of errors, for ray/_private/error_codes.py.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

// Adds ERROR_CODES, a dictionary from names to numbers, and TASK_RAISED, the code of an exception
// that user code raised.
bool add_error_codes(PyObject* module);

}  // namespace rt::python
