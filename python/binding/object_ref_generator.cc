#include "python/binding/object_ref_generator.h"

#include <cstddef>
#include <new>

#include "python/binding/object_ref.h"
#include "python/binding/objects.h"
#include "python/binding/runtime.h"
#include "worker/session_over.h"

namespace rt::python {
namespace {

void generator_dealloc(PyObject* self) {
  auto* object = as_object_ref_generator(self);
  if (object->weak_references) PyObject_ClearWeakRefs(self);
  object->stream.~Ref();
  object->result.~Ref();
  Py_TYPE(self)->tp_free(self);
}

// The worker that knows the stream; null with a Python error when its session is over.
worker::Worker* worker_of(PyObject* self) {
  if (as_object_ref_generator(self)->session == g_runtime.session) return g_runtime.worker.get();
  PyErr_SetString(
      PyExc_RuntimeError,
      "this ObjectRefGenerator belongs to a session that was shut down: call its function again");
  return nullptr;
}

// The next item as an ObjectRef, or the nil one when the deadline passes. Null without an error
// means that there are no more.
PyObject* next_until(PyObject* self, int64_t deadline_us) {
  worker::Worker* worker = worker_of(self);
  if (!worker) return nullptr;
  const worker::Ref stream = as_object_ref_generator(self)->stream;
  worker::Ref item;
  // Taking an item that is here need not release the GIL.
  worker::Waited waited = worker->next_item(stream, 0, &item);
  if (waited == worker::Waited::kTimeout && deadline_us != 0) {
    WorkerHold hold = hold_worker();
    if (!wait_with_signals([&] { return worker->next_item(stream, deadline_us, &item); }, &waited))
      return nullptr;
    if (!item && waited == worker::Waited::kDone && hold != g_runtime.worker)
      return raise(worker::session_over());
  }
  if (item) return new_object_ref(std::move(item));
  return waited == worker::Waited::kTimeout ? nil_object_ref() : nullptr;
}

PyObject* tp_iternext(PyObject* self) { return next_until(self, -1); }

PyObject* stop_at_end(PyObject* item) {
  if (!item && !PyErr_Occurred()) PyErr_SetNone(PyExc_StopIteration);
  return item;
}
PyObject* next(PyObject* self, PyObject*) { return stop_at_end(next_until(self, -1)); }

bool parse_timeout(PyObject* args, PyObject* kwargs, PyObject** timeout) {
  static const char* names[] = {"timeout_s", nullptr};
  *timeout = Py_None;
  return PyArg_ParseTupleAndKeywords(args, kwargs, "|O", const_cast<char**>(names), timeout);
}

PyObject* next_sync(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* timeout;
  int64_t deadline_us;
  if (!parse_timeout(args, kwargs, &timeout)) return nullptr;
  double seconds = timeout == Py_None ? -1 : PyFloat_AsDouble(timeout);
  if (PyErr_Occurred() || !deadline_of(timeout, &deadline_us)) return nullptr;
  return stop_at_end(next_until(self, seconds == 0 ? 0 : deadline_us));
}

PyObject* async_next(PyObject* self, PyObject* timeout) {
  PyPtr args(PyTuple_Pack(2, self, timeout));
  return call_python("ray._private.generators", "next_item", args.get()).release();
}
PyObject* next_async(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* timeout;
  return parse_timeout(args, kwargs, &timeout) ? async_next(self, timeout) : nullptr;
}
PyObject* am_anext(PyObject* self) { return async_next(self, Py_None); }

bool peek(PyObject* self, worker::Worker::ItemState* state, worker::Ref* item) {
  worker::Worker* worker = worker_of(self);
  if (!worker) return false;
  *state = worker->peek_item(as_object_ref_generator(self)->stream, item);
  return true;
}

using State = worker::Worker::ItemState;

PyObject* is_in(PyObject* self, State wanted) {
  State state;
  worker::Ref item;
  if (!peek(self, &state, &item)) return nullptr;
  return PyBool_FromLong(state == wanted);
}
PyObject* next_ready(PyObject* self, PyObject*) { return is_in(self, State::kHere); }
PyObject* is_finished(PyObject* self, PyObject*) { return is_in(self, State::kEnd); }

PyObject* waitable(PyObject* self, PyObject*) {
  worker::Ref ref;
  return waitable_of(self, &ref) ? new_object_ref(std::move(ref)) : nullptr;
}

PyObject* result_ref(PyObject* self, void*) {
  return new_object_ref(as_object_ref_generator(self)->result);
}
PyObject* completed(PyObject* self, PyObject*) { return result_ref(self, nullptr); }

PyObject* not_implemented(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError,
                  "send(), throw() and close() are not supported by ObjectRefGenerator: use "
                  "ray.cancel(generator) to end its task");
  return nullptr;
}

PyObject* refuse_reduce(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "an ObjectRefGenerator cannot be pickled, put or passed to a task: pass the "
                  "ObjectRefs it gives");
  return nullptr;
}

PyMethodDef kGeneratorMethods[] = {
    {"next", next, METH_NOARGS,
     "The ObjectRef of the next item; waits for it. StopIteration when there are no more."},
    {"completed", completed, METH_NOARGS,
     "An ObjectRef that is ready when the task has ended; raises when the system ended it."},
    {"next_ready", next_ready, METH_NOARGS,
     "Whether the next item is here: next() gives it without waiting."},
    {"is_finished", is_finished, METH_NOARGS,
     "Whether the task has ended and all its items were taken."},
    {"_next_sync", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(next_sync)),
     METH_VARARGS | METH_KEYWORDS,
     "The same as next(); the nil ObjectRef when timeout_s (seconds) passes."},
    {"_next_async", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(next_async)),
     METH_VARARGS | METH_KEYWORDS,
     "The same as _next_sync() as a coroutine; StopAsyncIteration when there are no more."},
    {"_waitable", waitable, METH_NOARGS,
     "An ObjectRef that is ready when next() need not wait. Its value is not to be read."},
    {"send", not_implemented, METH_VARARGS, "Not supported."},
    {"throw", not_implemented, METH_VARARGS, "Not supported."},
    {"close", not_implemented, METH_NOARGS, "Not supported."},
    {"asend", not_implemented, METH_VARARGS, "Not supported."},
    {"athrow", not_implemented, METH_VARARGS, "Not supported."},
    {"aclose", not_implemented, METH_NOARGS, "Not supported."},
    {"__reduce__", refuse_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef kAttributes[] = {
    {"_generator_ref", result_ref, nullptr, "The ObjectRef of the task's result.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyAsyncMethods kGeneratorAsync = {.am_aiter = PyObject_SelfIter, .am_anext = am_anext};

PyObject* generator_class_getitem(PyObject* type, PyObject*) { return Py_NewRef(type); }
PyMethodDef kGeneratorClassGetItem = {"__class_getitem__", generator_class_getitem,
                                      METH_O | METH_CLASS, "ObjectRefGenerator[T] in annotations."};

}  // namespace

PyTypeObject ObjectRefGeneratorType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ObjectRefGenerator",
    .tp_basicsize = sizeof(ObjectRefGeneratorObject),
    .tp_dealloc = generator_dealloc,
    .tp_as_async = &kGeneratorAsync,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "The ObjectRefs of what a remote generator yields, in order, each usable as soon as it was "
        "yielded. Dropping it frees what was not taken.",
    .tp_weaklistoffset = offsetof(ObjectRefGeneratorObject, weak_references),
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = tp_iternext,
    .tp_methods = kGeneratorMethods,
    .tp_getset = kAttributes,
};

PyObject* new_object_ref_generator(std::vector<worker::Ref>& returns) {
  if (returns.size() != 2)
    return PyErr_Format(PyExc_SystemError, "a streaming task has two references, got %zu",
                        returns.size());
  auto* self = PyObject_New(ObjectRefGeneratorObject, &ObjectRefGeneratorType);
  if (!self) return nullptr;
  self->weak_references = nullptr;
  self->session = g_runtime.session;
  new (&self->stream) worker::Ref(std::move(returns[0]));
  new (&self->result) worker::Ref(std::move(returns[1]));
  return reinterpret_cast<PyObject*>(self);
}

bool waitable_of(PyObject* generator, worker::Ref* ref) {
  State state;
  if (!peek(generator, &state, ref)) return false;
  if (state == State::kEnd) *ref = as_object_ref_generator(generator)->result;
  return true;
}

bool add_object_ref_generator(PyObject* module) {
  if (PyType_Ready(&ObjectRefGeneratorType) < 0) return false;
  PyPtr getitem(PyDescr_NewClassMethod(&ObjectRefGeneratorType, &kGeneratorClassGetItem));
  return getitem &&
         PyDict_SetItemString(ObjectRefGeneratorType.tp_dict, "__class_getitem__", getitem.get()) ==
             0 &&
         PyModule_AddObjectRef(module, "ObjectRefGenerator",
                               reinterpret_cast<PyObject*>(&ObjectRefGeneratorType)) == 0;
}

}  // namespace rt::python
