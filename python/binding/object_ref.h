// ray.ObjectRef as a C type, and how references travel inside pickles.
#pragma once

#include <vector>

#include "python/binding/py.h"
#include "worker/ref.h"

namespace rt::python {

struct ObjectRefObject {
  PyObject_HEAD PyObject* weak_references;
  worker::Ref ref;
  // The id when `ref` is empty, of an ObjectRef that was made from bytes and has no owner.
  ObjectId bare;
  const ObjectId& id() const { return ref ? ref.id() : bare; }
};

extern PyTypeObject ObjectRefType;

inline bool is_object_ref(PyObject* object) { return Py_TYPE(object) == &ObjectRefType; }
inline ObjectRefObject* as_object_ref(PyObject* object) {
  return reinterpret_cast<ObjectRefObject*>(object);
}
PyObject* new_object_ref(worker::Ref ref);
PyObject* nil_object_ref();

// While one of these lives, references that are pickled in this thread go to a list and are
// pickled as their index in it. The list becomes ValueParts.contained, and unpickling looks the
// index up in Value.contained. Instances nest.
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
