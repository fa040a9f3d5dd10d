#include "python/binding/remote_attribute.h"

#include <cstddef>

namespace rt::python {
namespace {

// The interpreter reports to profilers only the calls of its own kinds of C functions, so calls of
// remote() are reported here. Other versions of Python have other means for this, or none.
#if (PY_VERSION_HEX >> 16) == 0x030B
// Profilers look only at its name.
PyMethodDef kRemoteMethod = {"remote", [](PyObject*, PyObject*) -> PyObject* { return nullptr; },
                             METH_VARARGS, nullptr};

bool tell_profiler(PyThreadState* thread, int event, PyObject* function) {
  if (!thread->c_profilefunc || thread->tracing) return true;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyThreadState_EnterTracing(thread);
  const bool ok =
      thread->c_profilefunc(thread->c_profileobj, PyEval_GetFrame(), event, function) == 0;
  PyThreadState_LeaveTracing(thread);
  if (ok) {
    PyErr_Restore(type, value, traceback);
  } else {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  return ok;
}

PyObject* submit_profiled(Submit submit, PyObject* function, PyObject* const* args,
                          Py_ssize_t count, PyObject* names) {
  PyThreadState* thread = PyThreadState_Get();
  PyPtr method(PyCFunction_NewEx(&kRemoteMethod, function, nullptr));
  if (!method || !tell_profiler(thread, PyTrace_C_CALL, method.get())) return nullptr;
  PyPtr result(submit(function, args, count, names));
  if (!tell_profiler(thread, result ? PyTrace_C_RETURN : PyTrace_C_EXCEPTION, method.get()))
    return nullptr;
  return result.release();
}

PyObject* submit_call(Submit submit, PyObject* function, PyObject* const* args, Py_ssize_t count,
                      PyObject* names) {
  if (PyThreadState_Get()->c_profilefunc) [[unlikely]]
    return submit_profiled(submit, function, args, count, names);
  return submit(function, args, count, names);
}
#else
PyObject* submit_call(Submit submit, PyObject* function, PyObject* const* args, Py_ssize_t count,
                      PyObject* names) {
  return submit(function, args, count, names);
}
#endif

// RemoteCall: the object that `f.remote` is when it is not called at once.
struct CallObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Submit submit;
  PyObject* function;
};

CallObject* remote_of(PyObject* object) { return reinterpret_cast<CallObject*>(object); }

PyObject* call_remote(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return submit_call(remote_of(self)->submit, remote_of(self)->function, args,
                     PyVectorcall_NARGS(flags), names);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(remote_of(self)->function);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(remote_of(self)->function);
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

// Attributes that the object does not have are the function's: __name__, __annotations__,
// __defaults__...
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  PyPtr wrapped(PyObject_GetAttrString(remote_of(self)->function, "__wrapped__"));
  return wrapped ? PyObject_GetAttr(wrapped.get(), name) : nullptr;
}

PyObject* get_wrapped(PyObject* self, void*) {
  return PyObject_GetAttrString(remote_of(self)->function, "__wrapped__");
}
PyObject* get_self(PyObject* self, void*) { return Py_NewRef(remote_of(self)->function); }
PyObject* get_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(remote_of(self)->function, "__doc__");
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<method 'remote' of %R>", remote_of(self)->function);
}

PyObject* compare(PyObject* self, PyObject* other, int op) {
  if (!Py_IS_TYPE(other, Py_TYPE(self)) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((remote_of(self)->function == remote_of(other)->function) ==
                         (op == Py_EQ));
}

Py_hash_t hash(PyObject* self) { return _Py_HashPointer(remote_of(self)->function); }

PyObject* reduce_remote(PyObject* self, PyObject*) {
  PyPtr builtins(PyImport_ImportModule("builtins"));
  PyPtr getattr(builtins ? PyObject_GetAttrString(builtins.get(), "getattr") : nullptr);
  return getattr ? Py_BuildValue("(O(Os))", getattr.get(), remote_of(self)->function, "remote")
                 : nullptr;
}

PyGetSetDef kCallAttributes[] = {
    {"__wrapped__", get_wrapped, nullptr, "The Python function.", nullptr},
    {"__self__", get_self, nullptr, "The remote function.", nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef kCallMethods[] = {{"__reduce__", reduce_remote, METH_NOARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};

PyTypeObject CallType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.RemoteCall",
    .tp_basicsize = sizeof(CallObject),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(CallObject, vectorcall),
    .tp_repr = repr,
    .tp_hash = hash,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = get_attribute,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_richcompare = compare,
    .tp_methods = kCallMethods,
    .tp_getset = kCallAttributes,
};

// RemoteAttribute: the descriptor in the type.
struct AttributeObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Submit submit;
  // The type is static, as this object is.
  PyTypeObject* owner;
};

AttributeObject* attribute_of(PyObject* object) {
  return reinterpret_cast<AttributeObject*>(object);
}

// f.remote(...) as the interpreter calls methods: the first argument is f.
PyObject* call_attribute(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count < 1 || !PyObject_TypeCheck(args[0], attribute_of(self)->owner)) {
    return PyErr_Format(PyExc_TypeError, "remote() is a method of remote functions");
  }
  return submit_call(attribute_of(self)->submit, args[0], args + 1, count - 1, names);
}

PyObject* attribute_repr(PyObject* self) {
  return PyUnicode_FromFormat("<method 'remote' of '%s' objects>",
                              attribute_of(self)->owner->tp_name);
}

PyObject* get_remote(PyObject* self, PyObject* function, PyObject*) {
  if (!function) return Py_NewRef(self);
  auto* call = PyObject_GC_New(CallObject, &CallType);
  if (!call) return nullptr;
  call->vectorcall = call_remote;
  call->submit = attribute_of(self)->submit;
  call->function = Py_NewRef(function);
  PyObject_GC_Track(call);
  return reinterpret_cast<PyObject*>(call);
}

PyTypeObject AttributeType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.RemoteAttribute",
    .tp_basicsize = sizeof(AttributeObject),
    .tp_vectorcall_offset = offsetof(AttributeObject, vectorcall),
    .tp_repr = attribute_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc =
        "Submits a task that calls the function with these arguments; returns its ObjectRef (a "
        "list of them for num_returns > 1).",
    .tp_descr_get = get_remote,
};

}  // namespace

bool add_remote_attribute(PyTypeObject* type, Submit submit) {
  if (PyType_Ready(&CallType) < 0 || PyType_Ready(&AttributeType) < 0) return false;
  auto* attribute = PyObject_New(AttributeObject, &AttributeType);
  if (!attribute) return false;
  attribute->vectorcall = call_attribute;
  attribute->submit = submit;
  attribute->owner = type;
  PyPtr owned(reinterpret_cast<PyObject*>(attribute));
  if (PyDict_SetItemString(type->tp_dict, "remote", owned.get()) < 0) return false;
  PyType_Modified(type);
  return true;
}

}  // namespace rt::python
