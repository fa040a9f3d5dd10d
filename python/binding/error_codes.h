// The numbers of errors, for ray/_private/error_codes.py, and the text of one.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

// Adds ERROR_CODES, a dictionary from names to numbers; TASK_RAISED, the code of an exception that
// user code raised; and SESSION_OVER, the text of the error after ray.shutdown().
bool add_error_codes(PyObject* module);

}  // namespace rt::python
