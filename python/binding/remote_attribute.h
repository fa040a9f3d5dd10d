// `remote` of remote functions: a call `f.remote(...)` is that of a method, without an object made
// for it, and `f.remote` alone is an object that has the function's signature, name and
// documentation, for inspect and for whoever wraps it.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

// (function, arguments, positional, names of the keyword ones), as of METH_FASTCALL |
// METH_KEYWORDS.
using Submit = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// Of a type that is ready, whose instances have `__wrapped__`. False with a Python error.
bool add_remote_attribute(PyTypeObject* type, Submit submit);

}  // namespace rt::python
