// Functions of the C API that not every version of Python since 3.9 has.
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

// Whether the interpreter is being finalised. Other threads that ask for the GIL are ended.
inline bool interpreter_ends() {
#if PY_VERSION_HEX < 0x030D0000
  return _Py_IsFinalizing() != 0;
#else
  return Py_IsFinalizing() != 0;
#endif
}
