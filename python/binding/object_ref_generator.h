// ray.ObjectRefGenerator as a C type: the consumer's end of a task with num_returns="streaming".
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

struct ObjectRefGeneratorObject {
  PyObject_HEAD PyObject* weak_references;
  worker::Ref stream;  // the consumer's end: its last reference gives up the items not taken
  worker::Ref result;  // ready when the task has ended
  uint64_t session;
};

extern PyTypeObject ObjectRefGeneratorType;

inline bool is_object_ref_generator(PyObject* object) {
  return Py_TYPE(object) == &ObjectRefGeneratorType;
}
inline ObjectRefGeneratorObject* as_object_ref_generator(PyObject* object) {
  return reinterpret_cast<ObjectRefGeneratorObject*>(object);
}

// Of the two references that submitting such a task gives.
PyObject* new_object_ref_generator(std::vector<worker::Ref>& returns);

// What becomes ready when the next item is here or there are no more. False with a Python error.
bool waitable_of(PyObject* generator, worker::Ref* ref);

bool add_object_ref_generator(PyObject* module);

}  // namespace rt::python
