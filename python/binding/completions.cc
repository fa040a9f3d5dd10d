#include "python/binding/completions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <vector>

#include "common/base/mutex.h"
#include "python/binding/object_ref.h"
#include "python/binding/runtime.h"

namespace rt::python {
namespace {

// Filled by whichever thread reads the sockets (without the GIL and with the worker's mutex held,
// so it only enqueues) and emptied by Python. Shared, because callbacks may outlive the Python
// object.
struct Completions {
  Mutex mutex;
  std::vector<long long> tokens GUARDED_BY(mutex);
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ~Completions() { close(fd); }

  void push(long long token) {
    bool first;
    {
      MutexLock lock(mutex);
      first = tokens.empty();
      tokens.push_back(token);
    }
    uint64_t one = 1;
    if (first) (void)!write(fd, &one, sizeof one);
  }
};

struct QueueObject {
  PyObject_HEAD std::shared_ptr<Completions> completions;
};

QueueObject* queue_of(PyObject* object) { return reinterpret_cast<QueueObject*>(object); }

PyObject* queue_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* queue = reinterpret_cast<QueueObject*>(type->tp_alloc(type, 0));
  if (queue)
    new (&queue->completions) std::shared_ptr<Completions>(std::make_shared<Completions>());
  return reinterpret_cast<PyObject*>(queue);
}

void queue_dealloc(PyObject* self) {
  queue_of(self)->completions.~shared_ptr();
  Py_TYPE(self)->tp_free(self);
}

PyObject* fileno(PyObject* self, PyObject*) {
  return PyLong_FromLong(queue_of(self)->completions->fd);
}

// add(ref, token) -> bool: False when the reference is ready already; take() will then not return
// the token.
PyObject* add(PyObject* self, PyObject* args) {
  PyObject* ref;
  long long token;
  if (!PyArg_ParseTuple(args, "O!L", &ObjectRefType, &ref, &token)) return nullptr;
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  if (!as_object_ref(ref)->ref)
    return PyErr_Format(PyExc_ValueError, "an ObjectRef made from bytes alone has no owner");
  return PyBool_FromLong(worker->on_ready(
      as_object_ref(ref)->ref,
      [completions = queue_of(self)->completions, token] { completions->push(token); }));
}

PyObject* push(PyObject* self, PyObject* token) {
  long long value = PyLong_AsLongLong(token);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  queue_of(self)->completions->push(value);
  Py_RETURN_NONE;
}

PyObject* take(PyObject* self, PyObject*) {
  Completions& completions = *queue_of(self)->completions;
  uint64_t count;
  (void)!::read(completions.fd, &count, sizeof count);
  std::vector<long long> tokens;
  {
    MutexLock lock(completions.mutex);
    tokens.swap(completions.tokens);
  }
  PyPtr list(PyList_New(tokens.size()));
  for (size_t i = 0; list && i < tokens.size(); ++i) {
    PyObject* token = PyLong_FromLongLong(tokens[i]);
    if (!token) return nullptr;
    PyList_SET_ITEM(list.get(), i, token);
  }
  return list.release();
}

PyMethodDef kQueueMethods[] = {
    {"fileno", fileno, METH_NOARGS, "Readable when take() has something."},
    {"add", add, METH_VARARGS, nullptr},
    {"push", push, METH_O, "As if the reference of this token had become ready."},
    {"take", take, METH_NOARGS, "The tokens of references that became ready."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject QueueType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.CompletionQueue",
    .tp_basicsize = sizeof(QueueObject),
    .tp_dealloc = queue_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "References that became ready.",
    .tp_methods = kQueueMethods,
    .tp_new = queue_new,
};

}  // namespace

bool add_completions(PyObject* module) {
  return PyType_Ready(&QueueType) == 0 && PyModule_AddType(module, &QueueType) == 0;
}

}  // namespace rt::python
