// Functions of later C APIs that Python 3.9 lacks.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX < 0x030A0000
inline PyObject* Py_NewRef(PyObject* object) {
  Py_INCREF(object);
  return object;
}

inline PyObject* Py_XNewRef(PyObject* object) {
  Py_XINCREF(object);
  return object;
}

inline int PyModule_AddObjectRef(PyObject* module, const char* name, PyObject* value) {
  if (PyModule_AddObject(module, name, Py_XNewRef(value)) == 0) return 0;
  Py_XDECREF(value);
  return -1;
}
#endif
