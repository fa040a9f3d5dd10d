// ray.get, ray.put, ray.wait and ray.cancel.
#include "python/binding/objects.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "common/base/clock.h"
#include "python/binding/object_ref.h"
#include "python/binding/object_ref_generator.h"
#include "python/binding/runtime.h"
#include "python/binding/serialize.h"
#include "python/binding/spans.h"
#include "worker/core/object_entry.h"
#include "worker/session_over.h"

namespace rt::python {
namespace {

using worker::Ref;
using worker::Waited;

thread_local bool t_in_event_loop = false;

// Whether the value is in this process's memory, so that reading it cannot wait.
bool in_memory(const Ref& ref) {
  const worker::ObjectEntry& entry = worker::entry_of(ref);
  return entry.ready.load(std::memory_order_acquire) &&
         entry.state == worker::ObjectState::kInMemory;
}

PyObject* get_timeout() {
  PyPtr type = import_attribute("ray.exceptions", "GetTimeoutError");
  if (type) PyErr_SetString(type.get(), "Get timed out: some object(s) not ready.");
  return nullptr;
}

enum class Ready {
  kRaised,  // a Python error is set
  kAll,
  kOneFailed,  // while others are not ready
};

// Waits until all values are on this node, or one has failed while others are not ready. `since_us`
// gets the time when the wait began. `hold` keeps the worker for the caller, because ray.shutdown()
// may run while the GIL is free.
Ready wait_ready(worker::Worker& worker, std::span<const Ref> refs, PyObject* timeout,
                 int64_t* since_us, WorkerHold* hold) {
  int64_t deadline;
  if (!deadline_of(timeout, &deadline)) return Ready::kRaised;
  if (std::all_of(refs.begin(), refs.end(), in_memory)) return Ready::kAll;
  bool ready = true;
  for (const Ref& ref : refs) ready = ready && ref.entry()->ready.load(std::memory_order_acquire);
  if (t_in_event_loop && !ready) {
    PyPtr args(PyTuple_New(0));
    PyPtr warned = call_python("ray._private.async_actor", "warn_blocking_get", args.get());
    if (!warned) return Ready::kRaised;
  }
  Waited waited;
  *hold = hold_worker();
  *since_us = steady_now_us();
  if (!wait_with_signals([&] { return worker.wait_all(refs, deadline, *since_us); }, &waited))
    return Ready::kRaised;
  if (waited == Waited::kTimeout) return get_timeout(), Ready::kRaised;
  return waited == Waited::kFailed ? Ready::kOneFailed : Ready::kAll;
}

bool check_ref(PyObject* object) {
  if (!is_object_ref(object)) {
    return PyErr_Format(PyExc_TypeError, "expected an ObjectRef, got %s",
                        Py_TYPE(object)->tp_name) != nullptr;
  }
  if (as_object_ref(object)->ref) return true;
  PyErr_SetString(PyExc_ValueError,
                  "an ObjectRef made from bytes alone has no owner: its value cannot be found");
  return false;
}

PyObject* get_list(worker::Worker& worker, PyObject* list, PyObject* timeout) {
  size_t count = PyList_GET_SIZE(list);
  std::vector<Ref> refs;
  refs.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyList_GET_ITEM(list, i);
    if (!check_ref(item)) return nullptr;
    refs.push_back(as_object_ref(item)->ref);
  }
  int64_t since = 0;
  // Unpickling one value may end the session before the next one is read.
  WorkerHold hold = hold_worker();
  const Ready ready = wait_ready(worker, refs, timeout, &since, &hold);
  if (ready == Ready::kRaised) return nullptr;
  // Always raises.
  if (ready == Ready::kOneFailed)
    return value_object(worker, refs[worker.first_failed(refs, since)], since);
  PyPtr values(PyList_New(count));
  if (!values) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyObject* value = value_object(worker, refs[i], since);
    if (!value) return nullptr;
    PyList_SET_ITEM(values.get(), i, value);
  }
  return values.release();
}

bool parse_get(PyObject* const* args, Py_ssize_t positional, PyObject* names, PyObject** refs,
               PyObject** timeout) {
  *refs = positional > 0 ? args[0] : nullptr;
  *timeout = nullptr;
  if (positional > 1)
    return PyErr_Format(PyExc_TypeError, "get() takes 1 positional argument but %zd were given",
                        positional) != nullptr;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "timeout") == 0) {
      *timeout = args[positional + i];
    } else if (PyUnicode_CompareWithASCIIString(name, "object_refs") == 0 && !*refs) {
      *refs = args[positional + i];
    } else if (PyUnicode_CompareWithASCIIString(name, "_use_object_store") != 0) {
      return PyErr_Format(PyExc_TypeError, "get() got an unexpected keyword argument '%U'", name) !=
             nullptr;
    }
  }
  return *refs || PyErr_Format(PyExc_TypeError, "get() missing 1 required argument: 'object_refs'");
}

PyObject* get_unrecorded(PyObject*, PyObject* const* args, Py_ssize_t positional, PyObject* names) {
  PyObject *refs, *timeout;
  if (!parse_get(args, positional, names, &refs, &timeout)) return nullptr;
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  if (is_object_ref(refs)) {
    if (!check_ref(refs)) return nullptr;
    Ref ref = as_object_ref(refs)->ref;
    WorkerHold hold;
    int64_t since = 0;
    if (wait_ready(*worker, {&ref, 1}, timeout, &since, &hold) == Ready::kRaised) return nullptr;
    return value_object(*worker, ref, since);
  }
  if (is_object_ref_generator(refs)) return Py_NewRef(refs);
  if (PyList_Check(refs)) return get_list(*worker, refs, timeout);
  return PyErr_Format(PyExc_ValueError,
                      "Invalid type of object refs, %s, is given. 'object_refs' must either be a "
                      "list of ObjectRefs or a single ObjectRef.",
                      Py_TYPE(refs)->tp_name);
}

PyObject* get(PyObject* self, PyObject* const* args, Py_ssize_t positional, PyObject* names) {
  if (g_runtime.profiles) [[unlikely]]
    return record("ray.get", [=] { return get_unrecorded(self, args, positional, names); });
  return get_unrecorded(self, args, positional, names);
}

// ready_value(ref) -> the value or exception of a reference that has become ready. It never
// connects the process: the session may have ended since the reference became ready, or by its end.
PyObject* ready_value(PyObject* self, PyObject* ref) {
  if (!g_runtime.worker) return raise(worker::session_over());
  return get_unrecorded(self, &ref, 1, nullptr);
}

PyObject* put_unrecorded(PyObject* object) {
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  if (is_object_ref(object)) {
    PyErr_SetString(PyExc_TypeError,
                    "Calling 'put' on an ray.ObjectRef is not allowed. If you really want to do "
                    "this, you can wrap the ObjectRef in a list and call 'put' on it.");
    return nullptr;
  }
  const uint64_t session = g_runtime.session;
  Serialized value;
  if (!value.encode(object, "the put value") || !still_in(session)) return nullptr;
  Result<Ref> ref = Error{};
  {
    WithoutGil without_gil(value.is_large());
    ref = worker->put(value.parts);
  }
  if (!ref) return raise(ref.error());
  return new_object_ref(std::move(*ref));
}

PyObject* put_value(PyObject*, PyObject* object) {
  if (g_runtime.profiles) [[unlikely]]
    return record("ray.put", [=] { return put_unrecorded(object); });
  return put_unrecorded(object);
}

struct WaitArgs {
  PyObject* list = nullptr;
  Py_ssize_t count = 0;
  Py_ssize_t num_returns = 1;
  int64_t deadline_us = -1;
  bool fetch_local = true;
  bool has_generators = false;
  // Seen by check_wait(), so that errors need no second look at a long list.
  bool has_unseen_errors = false;
};

std::atomic<uint64_t> g_wait_serial{0};

bool parse_wait(PyObject* args, PyObject* kwargs, WaitArgs* out) {
  static const char* names[] = {"ray_waitables", "num_returns", "timeout", "fetch_local", nullptr};
  PyObject* timeout = Py_None;
  int fetch_local = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$nOp:wait", const_cast<char**>(names),
                                   &out->list, &out->num_returns, &timeout, &fetch_local)) {
    return false;
  }
  out->fetch_local = fetch_local;
  if (is_object_ref(out->list)) {
    PyErr_SetString(PyExc_TypeError,
                    "wait() expected a list of ray.ObjectRef or ray.ObjectRefGenerator, got a "
                    "single ray.ObjectRef");
    return false;
  }
  if (!PyList_Check(out->list)) {
    return PyErr_Format(PyExc_TypeError,
                        "wait() expected a list of ray.ObjectRef or ray.ObjectRefGenerator, got %s",
                        Py_TYPE(out->list)->tp_name) != nullptr;
  }
  if (timeout != Py_None) {
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1.0 && PyErr_Occurred()) return false;
    if (!(seconds >= 0)) {
      return PyErr_Format(PyExc_ValueError,
                          "The 'timeout' argument must be nonnegative. Received %R",
                          timeout) != nullptr;
    }
  }
  out->count = PyList_GET_SIZE(out->list);
  return deadline_of(timeout, &out->deadline_us);
}

bool check_wait(WaitArgs& wait) {
  uint64_t serial = ++g_wait_serial;
  // Locals, which stay in registers: the loop is what ray.wait() on many references costs.
  bool has_generators = false, has_unseen_errors = false;
  for (Py_ssize_t i = 0; i < wait.count; ++i) {
    PyObject* item = PyList_GET_ITEM(wait.list, i);
    bool generator = is_object_ref_generator(item);
    if (!is_object_ref(item) && !generator) {
      return PyErr_Format(PyExc_TypeError,
                          "wait() expected a list of ray.ObjectRef or ray.ObjectRefGenerator, got "
                          "list containing %s",
                          Py_TYPE(item)->tp_name) != nullptr;
    }
    if (!generator && !check_ref(item)) return false;
    has_generators |= generator;
    worker::RefEntry* entry = generator ? as_object_ref_generator(item)->stream.entry()
                                        : as_object_ref(item)->ref.entry();
    if (entry->mark == serial)
      return PyErr_Format(PyExc_ValueError, "Wait requires a list of unique ray_waitables.") !=
             nullptr;
    entry->mark = serial;
    has_unseen_errors |=
        static_cast<worker::ObjectEntry*>(entry)->unseen_error.load(std::memory_order_relaxed);
  }
  wait.has_generators = has_generators;
  wait.has_unseen_errors = has_unseen_errors;
  if (wait.count && wait.num_returns <= 0)
    return PyErr_Format(PyExc_ValueError, "Invalid number of objects to return %zd.",
                        wait.num_returns) != nullptr;
  if (wait.count && wait.num_returns > wait.count) {
    return PyErr_Format(PyExc_ValueError,
                        "num_returns cannot be greater than the number of ray_waitables provided "
                        "to ray.wait.") != nullptr;
  }
  return true;
}

// Makes (ready, rest) from the same objects, both in input order, with at most num_returns in
// `ready`. `ready(i)` says whether item i is ready.
template <class Ready>
PyObject* split(const WaitArgs& wait, const std::vector<PyObject*>& items, Py_ssize_t ready_count,
                Ready ready) {
  Py_ssize_t take = std::min(ready_count, wait.num_returns), done = 0, left = 0;
  PyPtr first(PyList_New(take)), rest(PyList_New(wait.count - take));
  if (!first || !rest) return nullptr;
  for (Py_ssize_t i = 0; i < wait.count; ++i) {
    if (done < take && ready(i)) {
      PyList_SET_ITEM(first.get(), done++, Py_NewRef(items[i]));
    } else {
      PyList_SET_ITEM(rest.get(), left++, Py_NewRef(items[i]));
    }
  }
  return PyTuple_Pack(2, first.get(), rest.get());
}

PyObject* wait_slow(worker::Worker& worker, const WaitArgs& wait) {
  // Keep the items alive, because the list may change while the GIL is free.
  std::vector<PyPtr> owners;
  std::vector<PyObject*> items;
  std::vector<Ref> refs;
  for (Py_ssize_t i = 0; i < wait.count; ++i) {
    items.push_back(PyList_GET_ITEM(wait.list, i));
    owners.push_back(PyPtr::borrow(items.back()));
    if (is_object_ref(items.back())) {
      refs.push_back(as_object_ref(items.back())->ref);
    } else if (!waitable_of(items.back(), &refs.emplace_back())) {
      return nullptr;
    }
  }
  std::vector<bool> ready(wait.count);
  Waited waited;
  WorkerHold hold = hold_worker();
  const int64_t since = steady_now_us();
  if (!wait_with_signals(
          [&] {
            return worker.wait_some(refs, wait.num_returns, wait.deadline_us, since,
                                    wait.fetch_local, &ready);
          },
          &waited))
    return nullptr;
  ready.resize(wait.count);
  worker.errors_seen(refs);
  return split(wait, items, std::count(ready.begin(), ready.end(), true),
               [&](Py_ssize_t i) { return ready[i]; });
}

PyObject* wait_unrecorded(PyObject* args, PyObject* kwargs) {
  WaitArgs wait;
  worker::Worker* worker = connected();
  if (!worker || !parse_wait(args, kwargs, &wait) || !check_wait(wait)) return nullptr;
  if (wait.count == 0) return Py_BuildValue("([][])");
  if (wait.has_generators) return wait_slow(*worker, wait);
  // When enough references are already in memory, the worker need not be asked: values arrive
  // without this thread reading.
  Py_ssize_t here = 0;
  for (Py_ssize_t i = 0; i < wait.count && here < wait.num_returns; ++i)
    here += in_memory(as_object_ref(PyList_GET_ITEM(wait.list, i))->ref);
  if (here < wait.num_returns) return wait_slow(*worker, wait);
  std::vector<PyObject*> items(wait.count);
  for (Py_ssize_t i = 0; i < wait.count; ++i) items[i] = PyList_GET_ITEM(wait.list, i);
  auto see = [&](Py_ssize_t i) { worker->errors_seen({&as_object_ref(items[i])->ref, 1}); };
  if (wait.has_unseen_errors) {
    for (Py_ssize_t i = 0; i < wait.count; ++i) see(i);
  }
  return split(wait, items, here, [&](Py_ssize_t i) {
    if (!in_memory(as_object_ref(items[i])->ref)) return false;
    // The error may have come since check_wait().
    see(i);
    return true;
  });
}

PyObject* wait(PyObject*, PyObject* args, PyObject* kwargs) {
  if (g_runtime.profiles) [[unlikely]]
    return record("ray.wait", [=] { return wait_unrecorded(args, kwargs); });
  return wait_unrecorded(args, kwargs);
}

PyObject* cancel(PyObject*, PyObject* args) {
  PyObject* ref;
  int force, recursive;
  if (!PyArg_ParseTuple(args, "O!pp", &ObjectRefType, &ref, &force, &recursive)) return nullptr;
  worker::Worker* worker = connected();
  if (!worker || !check_ref(ref)) return nullptr;
  Ref held = as_object_ref(ref)->ref;
  Status status;
  {
    WithoutGil without_gil;
    status = worker->cancel(held, force, recursive);
  }
  if (!status) return raise(status.error());
  Py_RETURN_NONE;
}

PyObject* is_ready(PyObject*, PyObject* ref) {
  if (!check_ref(ref)) return nullptr;
  return PyBool_FromLong(as_object_ref(ref)->ref.entry()->ready.load(std::memory_order_acquire));
}

PyObject* mark_event_loop_thread(PyObject*, PyObject*) {
  t_in_event_loop = true;
  Py_RETURN_NONE;
}

PyMethodDef kObjectsFunctions[] = {
    {"get", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(get)),
     METH_FASTCALL | METH_KEYWORDS,
     "get(object_refs, *, timeout=None)\n--\n\nThe value of an ObjectRef, or the list of values of "
     "a list of them.\n\n"
     "timeout: seconds, None or -1 for no limit, 0 to look only. Raises GetTimeoutError when it "
     "passes, and the task's\n"
     "exception when a task failed. Arrays are read-only views."},
    {"ready_value", ready_value, METH_O,
     "get() of a reference that is ready, which is no span of the timeline and never connects."},
    {"put_value", put_value, METH_O, nullptr},
    {"wait", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(wait)),
     METH_VARARGS | METH_KEYWORDS,
     "wait(ray_waitables, *, num_returns=1, timeout=None, fetch_local=True)\n--\n\nWaits until "
     "num_returns of a list of unique ObjectRefs are ready.\n\n"
     "Returns (ready, rest), both in the order given; at most num_returns are in `ready`. A "
     "timeout (seconds) never raises."},
    {"cancel", cancel, METH_VARARGS, nullptr},
    {"is_ready", is_ready, METH_O, "Whether the value or error of an ObjectRef is known here."},
    {"mark_event_loop_thread", mark_event_loop_thread, METH_NOARGS,
     "get() warns from now on when it waits in this thread."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool deadline_of(PyObject* timeout, int64_t* deadline_us) {
  *deadline_us = -1;
  if (!timeout || timeout == Py_None) return true;
  double seconds = PyFloat_AsDouble(timeout);
  if (seconds == -1.0) return !PyErr_Occurred();
  if (!(seconds >= 0))
    return PyErr_Format(PyExc_ValueError, "timeout must not be negative") != nullptr;
  if (seconds < 1e9) *deadline_us = steady_now_us() + static_cast<int64_t>(seconds * 1e6);
  return true;
}

PyObject* value_object(worker::Worker& worker, const worker::Ref& ref, int64_t since_us) {
  Result<worker::Value> value = Error{};
  if (in_memory(ref)) {
    value = worker.value_of(ref, since_us);
  } else {
    // Mapping or fetching the value may wait.
    WithoutGil without_gil;
    value = worker.value_of(ref, since_us);
  }
  if (!value) return raise(value.error());
  PyObject* object = load_value(*value);
  if (!object && g_runtime.worker.get() == &worker) worker.errors_seen({&ref, 1});
  return object;
}

bool in_event_loop() { return t_in_event_loop; }

bool add_objects(PyObject* module) { return PyModule_AddFunctions(module, kObjectsFunctions) == 0; }

}  // namespace rt::python
