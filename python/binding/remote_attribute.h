// The attribute `remote` of remote functions. A call `f.remote(...)` works like that of a method,
// without making an object for it. `f.remote` alone is an object that has the function's
// signature, name and documentation, for inspect and for code that wraps it.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

// (function, arguments, number of positional ones, names of the keyword ones), as for
// METH_FASTCALL | METH_KEYWORDS.
using Submit = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// Adds the attribute to a type that is ready and whose instances have `__wrapped__`. False with a
// Python error.
bool add_remote_attribute(PyTypeObject* type, Submit submit);

}  // namespace rt::python
