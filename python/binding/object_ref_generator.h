// ray.ObjectRefGenerator as a C type: the consumer's end of a task with num_returns="streaming".
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/worker.h"

namespace rt::python {

struct ObjectRefGeneratorObject {
  PyObject_HEAD PyObject* weak_references;
  // The consumer's end. Dropping its last reference gives up the items that were not taken.
  worker::Ref stream;
  // Ready when the task has ended.
  worker::Ref result;
  uint64_t session;
};

extern PyTypeObject ObjectRefGeneratorType;

inline bool is_object_ref_generator(PyObject* object) {
  return Py_TYPE(object) == &ObjectRefGeneratorType;
}
inline ObjectRefGeneratorObject* as_object_ref_generator(PyObject* object) {
  return reinterpret_cast<ObjectRefGeneratorObject*>(object);
}

// Makes a generator from the two references that submitting a streaming task returns.
PyObject* new_object_ref_generator(std::vector<worker::Ref>& returns);

// Gives the reference that becomes ready when the next item is here or there are no more. False
// with a Python error.
bool waitable_of(PyObject* generator, worker::Ref* ref);

bool add_object_ref_generator(PyObject* module);

}  // namespace rt::python
