#include "python/binding/object_ref.h"

#include <cstddef>
#include <new>

#include "python/binding/runtime.h"

namespace rt::python {
namespace {

thread_local std::vector<worker::Ref>* t_collecting = nullptr;
thread_local const std::vector<worker::Ref>* t_restoring = nullptr;
PyObject* g_unpickle_contained = nullptr;
PyObject* g_unpickle_packed = nullptr;

PyObject* allocate() {
  auto* self = PyObject_New(ObjectRefObject, &ObjectRefType);
  if (!self) return nullptr;
  self->weak_references = nullptr;
  new (&self->ref) worker::Ref();
  new (&self->bare) ObjectId();
  return reinterpret_cast<PyObject*>(self);
}

PyObject* from_id(const ObjectId& id) {
  PyObject* self = allocate();
  if (self) as_object_ref(self)->bare = id;
  return self;
}

PyObject* from_bytes(PyObject* bytes) {
  std::string text;
  if (!PyBytes_Check(bytes))
    return PyErr_Format(PyExc_TypeError, "ObjectRef: expected bytes, got %s",
                        Py_TYPE(bytes)->tp_name);
  if (!to_string(bytes, &text)) return nullptr;
  if (!ObjectId::is_valid(text))
    return PyErr_Format(PyExc_ValueError, "ObjectRef: an id has %zu bytes, got %zu",
                        ObjectId::kSize, text.size());
  return from_id(ObjectId::from_binary(text));
}

PyObject* tp_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* bytes;
  static const char* names[] = {"id", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:ObjectRef", const_cast<char**>(names), &bytes))
    return nullptr;
  return from_bytes(bytes);
}

void ref_dealloc(PyObject* self) {
  auto* object = as_object_ref(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  object->ref.~Ref();
  Py_TYPE(self)->tp_free(self);
}

Py_hash_t tp_hash(PyObject* self) {
  auto hash = static_cast<Py_hash_t>(as_object_ref(self)->id().hash());
  return hash == -1 ? -2 : hash;
}

PyObject* tp_richcompare(PyObject* a, PyObject* b, int op) {
  if (!is_object_ref(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = as_object_ref(a)->id() == as_object_ref(b)->id();
  return PyBool_FromLong(equal == (op == Py_EQ));
}

PyObject* tp_repr(PyObject* self) {
  return PyUnicode_FromFormat("ObjectRef(%s)", as_object_ref(self)->id().hex().c_str());
}

PyObject* hex(PyObject* self, PyObject*) { return py_text(as_object_ref(self)->id().hex()); }
PyObject* binary(PyObject* self, PyObject*) { return py_bytes(as_object_ref(self)->id().view()); }
PyObject* is_nil(PyObject* self, PyObject*) {
  return PyBool_FromLong(as_object_ref(self)->id().is_nil());
}
PyObject* size(PyObject*, PyObject*) { return PyLong_FromSize_t(ObjectId::kSize); }

PyObject* make_id(const char* type, std::string_view bytes) {
  PyPtr args(Py_BuildValue("(y#)", bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
  return call_python("ray._private.ids", type, args.get()).release();
}
PyObject* task_id(PyObject* self, PyObject*) {
  return make_id("TaskID", task_of(as_object_ref(self)->id()).view());
}
PyObject* job_id(PyObject* self, PyObject*) {
  return make_id("JobID", job_of(task_of(as_object_ref(self)->id())).view());
}

PyObject* owner_address(PyObject* self, PyObject*) {
  auto* object = as_object_ref(self);
  if (!object->ref || !g_runtime.worker) return py_bytes("");
  return py_bytes(g_runtime.worker->owner_of(object->ref).SerializeAsString());
}
PyObject* call_site(PyObject*, PyObject*) { return py_text(""); }
PyObject* tensor_transport(PyObject*, PyObject*) { Py_RETURN_NONE; }

PyObject* from_binary(PyObject*, PyObject* bytes) { return from_bytes(bytes); }
PyObject* from_hex_text(PyObject*, PyObject* text) {
  std::string hex;
  if (!to_string(text, &hex)) return nullptr;
  std::string bytes = from_hex(hex);
  if (!ObjectId::is_valid(bytes))
    return PyErr_Format(PyExc_ValueError, "ObjectRef.from_hex: expected %zu hex digits",
                        2 * ObjectId::kSize);
  return from_id(ObjectId::from_binary(bytes));
}
PyObject* nil(PyObject*, PyObject*) { return nil_object_ref(); }
PyObject* from_random(PyObject*, PyObject*) {
  PyPtr args(Py_BuildValue("(n)", static_cast<Py_ssize_t>(ObjectId::kSize)));
  PyPtr bytes = call_python("os", "urandom", args.get());
  return bytes ? from_bytes(bytes.get()) : nullptr;
}

PyObject* delegate(const char* name, PyObject* self, PyObject* extra = nullptr) {
  PyPtr args(extra ? PyTuple_Pack(2, self, extra) : PyTuple_Pack(1, self));
  return call_python("ray._private.futures", name, args.get()).release();
}
PyObject* future(PyObject* self, PyObject*) { return delegate("concurrent_future", self); }
PyObject* as_future(PyObject* self, PyObject*) { return delegate("asyncio_future", self); }
PyObject* on_completed(PyObject* self, PyObject* callback) {
  return delegate("on_completed", self, callback);
}
PyObject* am_await(PyObject* self) { return delegate("await_ref", self); }

PyObject* reduce_ref(PyObject* self, PyObject*) {
  auto* object = as_object_ref(self);
  if (!object->ref)
    return Py_BuildValue("(O(y#))", &ObjectRefType, object->id().data(),
                         static_cast<Py_ssize_t>(ObjectId::kSize));
  if (t_collecting) {
    t_collecting->push_back(object->ref);
    return Py_BuildValue("(O(n))", g_unpickle_contained,
                         static_cast<Py_ssize_t>(t_collecting->size() - 1));
  }
  if (!g_runtime.worker) {
    PyErr_SetString(PyExc_RuntimeError, "an ObjectRef cannot be pickled after ray.shutdown()");
    return nullptr;
  }
  std::string packed = g_runtime.worker->pack_ref(object->ref);
  return Py_BuildValue("(O(y#))", g_unpickle_packed, packed.data(),
                       static_cast<Py_ssize_t>(packed.size()));
}
PyObject* reduce_global(PyObject*, PyObject* object) {
  if (!is_object_ref(object)) return PyErr_Format(PyExc_TypeError, "expected an ObjectRef");
  return reduce_ref(object, nullptr);
}

PyObject* unpickle_contained(PyObject*, PyObject* index_object) {
  size_t index = PyLong_AsSize_t(index_object);
  if (index == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  if (!t_restoring || index >= t_restoring->size()) {
    PyErr_SetString(PyExc_ValueError,
                    "this pickle holds ObjectRefs and can only be read as a whole value (ray.get "
                    "or an argument)");
    return nullptr;
  }
  return new_object_ref((*t_restoring)[index]);
}

PyObject* unpickle_packed(PyObject*, PyObject* packed) {
  std::string bytes;
  if (!to_string(packed, &bytes)) return nullptr;
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  auto ref = worker->unpack_ref(bytes);
  if (!ref) return raise(ref.error());
  return new_object_ref(std::move(*ref));
}

PyObject* collecting_refs(PyObject*, PyObject*) { return PyBool_FromLong(t_collecting != nullptr); }

PyMethodDef kRefMethods[] = {
    {"hex", hex, METH_NOARGS, "The id as 56 hex digits."},
    {"binary", binary, METH_NOARGS, "The id as 28 bytes."},
    {"is_nil", is_nil, METH_NOARGS, "Whether the id is all 0xff."},
    {"size", size, METH_NOARGS | METH_STATIC, "Bytes of an id: 28."},
    {"task_id", task_id, METH_NOARGS, "The TaskID of the task that makes this object."},
    {"job_id", job_id, METH_NOARGS, "The JobID this object belongs to."},
    {"owner_address", owner_address, METH_NOARGS, "Serialised address of the owner."},
    {"call_site", call_site, METH_NOARGS, "Where the object was created: '' unless recorded."},
    {"tensor_transport", tensor_transport, METH_NOARGS,
     "None: values travel through the object store."},
    {"future", future, METH_NOARGS, "A concurrent.futures.Future of the value."},
    {"as_future", as_future, METH_NOARGS, "An asyncio.Future of the value, of the running loop."},
    {"_on_completed", on_completed, METH_O,
     "Calls the argument with the value, in a helper thread."},
    {"from_binary", from_binary, METH_O | METH_STATIC, "An ObjectRef of 28 bytes."},
    {"from_hex", from_hex_text, METH_O | METH_STATIC, "An ObjectRef of 56 hex digits."},
    {"nil", nil, METH_NOARGS | METH_STATIC, "The nil ObjectRef."},
    {"from_random", from_random, METH_NOARGS | METH_STATIC, "An ObjectRef with a random id."},
    {"__reduce__", reduce_ref, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyAsyncMethods kRefAsync = {.am_await = am_await};

PyObject* ref_class_getitem(PyObject* type, PyObject*) { return Py_NewRef(type); }
PyMethodDef kRefClassGetItem = {"__class_getitem__", ref_class_getitem, METH_O | METH_CLASS,
                                "ObjectRef[T] in annotations."};

PyMethodDef kObjectRefFunctions[] = {{"_unpickle_contained", unpickle_contained, METH_O, nullptr},
                                     {"_unpickle_packed", unpickle_packed, METH_O, nullptr},
                                     {"_reduce_ref", reduce_global, METH_O, nullptr},
                                     {"collecting_refs", collecting_refs, METH_NOARGS,
                                      "Whether this thread pickles a value, which will hold the "
                                      "references in it."},
                                     {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject ObjectRefType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ObjectRef",
    .tp_basicsize = sizeof(ObjectRefObject),
    .tp_dealloc = ref_dealloc,
    .tp_as_async = &kRefAsync,
    .tp_repr = tp_repr,
    .tp_hash = tp_hash,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "A reference to an object somewhere in the cluster. The object lives while references to "
        "it do.",
    .tp_richcompare = tp_richcompare,
    .tp_weaklistoffset = offsetof(ObjectRefObject, weak_references),
    .tp_methods = kRefMethods,
    .tp_new = tp_new,
};

PyObject* new_object_ref(worker::Ref ref) {
  PyObject* self = allocate();
  if (self) as_object_ref(self)->ref = std::move(ref);
  return self;
}

PyObject* nil_object_ref() { return from_id(ObjectId::nil()); }

CollectRefs::CollectRefs(std::vector<worker::Ref>* into)
    : outer_(std::exchange(t_collecting, into)) {}
CollectRefs::~CollectRefs() { t_collecting = outer_; }
RestoreRefs::RestoreRefs(const std::vector<worker::Ref>* from)
    : outer_(std::exchange(t_restoring, from)) {}
RestoreRefs::~RestoreRefs() { t_restoring = outer_; }

bool add_object_ref(PyObject* module) {
  if (PyType_Ready(&ObjectRefType) < 0) return false;
  PyPtr getitem(PyDescr_NewClassMethod(&ObjectRefType, &kRefClassGetItem));
  if (!getitem ||
      PyDict_SetItemString(ObjectRefType.tp_dict, "__class_getitem__", getitem.get()) < 0)
    return false;
  if (PyModule_AddObjectRef(module, "ObjectRef", reinterpret_cast<PyObject*>(&ObjectRefType)) < 0)
    return false;
  if (PyModule_AddFunctions(module, kObjectRefFunctions) < 0) return false;
  g_unpickle_contained = PyObject_GetAttrString(module, "_unpickle_contained");
  g_unpickle_packed = PyObject_GetAttrString(module, "_unpickle_packed");
  // The C pickler looks here before it searches the type for __reduce_ex__.
  PyPtr table = import_attribute("copyreg", "dispatch_table");
  PyPtr reducer(PyObject_GetAttrString(module, "_reduce_ref"));
  return g_unpickle_contained && g_unpickle_packed && table && reducer &&
         PyDict_SetItem(table.get(), reinterpret_cast<PyObject*>(&ObjectRefType), reducer.get()) ==
             0;
}

}  // namespace rt::python
