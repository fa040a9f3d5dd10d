// ray.ObjectRef as a C type, and how references travel inside pickles.
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/ref.h"

namespace rt::python {

struct ObjectRefObject {
  PyObject_HEAD PyObject* weak_references;
  worker::Ref ref;
  ObjectId bare;  // the id when `ref` is empty: made from bytes, owned by nobody
  const ObjectId& id() const { return ref ? ref.id() : bare; }
};

extern PyTypeObject ObjectRefType;

inline bool is_object_ref(PyObject* object) { return Py_TYPE(object) == &ObjectRefType; }
inline ObjectRefObject* as_object_ref(PyObject* object) {
  return reinterpret_cast<ObjectRefObject*>(object);
}
PyObject* new_object_ref(worker::Ref ref);
PyObject* nil_object_ref();

// While a value is being pickled in this thread, references met go to a list and are pickled as
// their index in it. The list becomes ValueParts.contained; unpickling looks the index up in
// Value.contained. Nests.
class CollectRefs {
 public:
  explicit CollectRefs(std::vector<worker::Ref>* into);
  ~CollectRefs();

 private:
  std::vector<worker::Ref>* outer_;
};
class RestoreRefs {
 public:
  explicit RestoreRefs(const std::vector<worker::Ref>* from);
  ~RestoreRefs();

 private:
  const std::vector<worker::Ref>* outer_;
};

bool add_object_ref(PyObject* module);

}  // namespace rt::python
