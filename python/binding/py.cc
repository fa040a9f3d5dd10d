#include "python/binding/py.h"

namespace rt::python {

bool to_string(PyObject* object, std::string* out) {
  if (PyBytes_Check(object)) {
    out->assign(PyBytes_AS_STRING(object), PyBytes_GET_SIZE(object));
    return true;
  }
  if (PyUnicode_Check(object)) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (!text) {
      PyErr_Format(PyExc_ValueError,
                   "%A is not text that UTF-8 can express: it has half of a surrogate pair, which "
                   "is also what Python makes of a byte that is not UTF-8",
                   object);
      return false;
    }
    out->assign(text, size);
    return true;
  }
  PyErr_Format(PyExc_TypeError, "expected str or bytes, got %s", Py_TYPE(object)->tp_name);
  return false;
}

PyPtr import_attribute(const char* module, const char* name) {
  PyPtr imported(PyImport_ImportModule(module));
  if (!imported) return PyPtr();
  return PyPtr(PyObject_GetAttrString(imported.get(), name));
}

PyPtr call_python(const char* module, const char* name, PyObject* args) {
  PyPtr function = import_attribute(module, name);
  if (!function || !args) return PyPtr();
  return PyPtr(PyObject_Call(function.get(), args, nullptr));
}

bool set_item(PyObject* dict, const char* key, PyObject* value) {
  PyPtr owned(value);
  return owned && PyDict_SetItemString(dict, key, owned.get()) == 0;
}

}  // namespace rt::python
