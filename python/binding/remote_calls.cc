// The callables behind f.remote() and handle.method.remote(): C base types, whose Python
// subclasses (ray/remote_function.py, ray/actor.py) prepare them once per session.

#include <new>
#include <string>
#include <unordered_map>

#include "python/binding/call.h"
#include "python/binding/executor.h"
#include "python/binding/object_ref.h"
#include "python/binding/object_ref_generator.h"
#include "python/binding/objects.h"
#include "python/binding/plain_values.h"
#include "python/binding/remote_attribute.h"
#include "python/binding/runtime.h"
#include "python/binding/spans.h"
#include "python/binding/specs.h"
#include "worker/core/generator_stream.h"

namespace rt::python {
namespace {

// Template: a function with its options, as this session's worker knows it.
struct TemplateObject {
  PyObject_HEAD const worker::Template* value;
  uint64_t session;
  bool streaming;
};

PyTypeObject TemplateType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.Template",
    .tp_basicsize = sizeof(TemplateObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A function with its options, known to the worker of one session.",
};

// Templates live as long as their worker, so each set of options is made only once: calling
// `.options(...)` in a loop must not accumulate them.
struct TemplateCache {
  uint64_t session = 0;
  std::unordered_map<std::string, const worker::Template*> by_spec;
};
TemplateCache g_templates;

PyObject* make_template(PyObject*, PyObject* dict) {
  if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "expected a dict");
  worker::Worker* worker = connected();
  proto::TaskTemplate spec;
  if (!worker || !template_from_dict(dict, &spec)) return nullptr;
  if (g_templates.session != g_runtime.session) g_templates = {g_runtime.session, {}};
  bool streaming = spec.num_returns() == worker::kStreamingReturns;
  std::string key = spec.SerializeAsString();
  const worker::Template*& known = g_templates.by_spec[key];
  if (!known) {
    Result<const worker::Template*> made = worker->make_template(std::move(spec));
    if (!made) {
      g_templates.by_spec.erase(key);
      return raise(made.error());
    }
    known = *made;
  }
  auto* object = PyObject_New(TemplateObject, &TemplateType);
  if (!object) return nullptr;
  object->value = known;
  object->session = g_runtime.session;
  object->streaming = streaming;
  return reinterpret_cast<PyObject*>(object);
}

// The part that both callables share: the template of a session, and the number of positional
// arguments that the function takes.
struct Prepared {
  const worker::Template* value;
  uint64_t session;
  // Calls return an ObjectRefGenerator.
  bool streaming;
  // max_args -1 means any number. With min_args > max_args >= 0 every call is checked by
  // _check_arguments().
  int min_args, max_args;
  // The template depends on the placement group of the calling task, so the next call makes its
  // own.
  bool only_once;
};

// Checks the arguments of a call. Only Python knows the full signature, so self._check_arguments()
// is asked when there are keywords or the count looks wrong. False with a Python error.
bool check_arguments(PyObject* self, const Prepared& prepared, PyObject* const* args,
                     Py_ssize_t count, PyObject* names) {
  if (!names && count >= prepared.min_args && (prepared.max_args < 0 || count <= prepared.max_args))
    return true;
  Py_ssize_t positional = count - (names ? PyTuple_GET_SIZE(names) : 0);
  PyPtr tuple(PyTuple_New(positional)), dict(PyDict_New());
  if (!tuple || !dict) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (i < positional) {
      PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(args[i]));
    } else if (PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(names, i - positional), args[i]) < 0) {
      return false;
    }
  }
  PyPtr method(PyUnicode_InternFromString("_check_arguments"));
  PyPtr result(PyObject_CallMethodObjArgs(self, method.get(), tuple.get(), dict.get(), nullptr));
  return static_cast<bool>(result);
}

// Calls self._prepare() unless the template belongs to the current session. False with a Python
// error.
bool prepare(PyObject* self, const Prepared& prepared) {
  if (prepared.session == g_runtime.session && prepared.session) return true;
  PyPtr result(PyObject_CallMethod(self, "_prepare", nullptr));
  if (!result) return false;
  if (prepared.session != g_runtime.session || !prepared.session) {
    PyErr_SetString(PyExc_RuntimeError,
                    "ray.shutdown() or ray.init() ran while this remote function was being "
                    "exported: call it again");
    return false;
  }
  return true;
}

bool bind(Prepared* prepared, PyObject* args) {
  PyObject* object;
  int only_once = 0;
  if (!PyArg_ParseTuple(args, "O!ii|p", &TemplateType, &object, &prepared->min_args,
                        &prepared->max_args, &only_once))
    return false;
  prepared->only_once = only_once;
  prepared->value = reinterpret_cast<TemplateObject*>(object)->value;
  prepared->session = reinterpret_cast<TemplateObject*>(object)->session;
  prepared->streaming = reinterpret_cast<TemplateObject*>(object)->streaming;
  return true;
}

struct FunctionObject {
  PyObject_HEAD Prepared prepared;
};

PyObject* function_bind(PyObject* self, PyObject* args) {
  if (!bind(&reinterpret_cast<FunctionObject*>(self)->prepared, args)) return nullptr;
  Py_RETURN_NONE;
}

template <class Arguments>
PyObject* submit_function(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                          PyObject* names) {
  Prepared& prepared = reinterpret_cast<FunctionObject*>(self)->prepared;
  Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
  if (!prepare(self, prepared)) return nullptr;
  const uint64_t session = prepared.session;
  const worker::Template* function = prepared.value;
  if (prepared.only_once) [[unlikely]]
    prepared.session = 0;
  if (!check_arguments(self, prepared, args, count, names) || !still_in(session)) return nullptr;
  worker::Worker& worker = *g_runtime.worker;
  Arguments call;
  if (!call.build(worker, args, count, names) || !still_in(session)) return nullptr;
  std::vector<worker::Ref> returns;
  if (in_event_loop()) submit_for_coroutine();
  auto submit = [&] { return worker.submit(function, call.args(), &returns); };
  Status status;
  {
    WithoutGil without_gil(call.is_large());
    status = submit();
  }
  if (!status) return raise(status.error());
  return prepared.streaming ? new_object_ref_generator(returns) : refs_of_returns(returns);
}

template <class Arguments>
PyObject* function_remote(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                          PyObject* names) {
  if (g_runtime.profiles) [[unlikely]]
    return record("submit_task",
                  [=] { return submit_function<Arguments>(self, args, positional, names); });
  return submit_function<Arguments>(self, args, positional, names);
}

PyMethodDef kFunctionMethods[] = {
    {"_bind", function_bind, METH_VARARGS, "_bind(template, min_args, max_args, only_once=False)"},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject FunctionType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.FunctionBase",
    .tp_basicsize = sizeof(FunctionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The submitting half of a RemoteFunction.",
    .tp_methods = kFunctionMethods,
    .tp_new = PyType_GenericNew,
};

PyMethodDef kForeignFunctionMethods[] = {
    {"remote",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function_remote<PlainCallArgs>)),
     METH_FASTCALL | METH_KEYWORDS,
     "Submits a task that calls the function of another language; returns its ObjectRef."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject ForeignFunctionType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ForeignFunctionBase",
    .tp_basicsize = sizeof(FunctionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The submitting half of a function of another language.",
    .tp_methods = kForeignFunctionMethods,
    .tp_base = &FunctionType,
};

// ActorCore: a counted hold on an actor, shared by a handle and its methods.
struct ActorCoreObject {
  PyObject_HEAD worker::Actor actor;
  uint64_t session;
};
extern PyTypeObject ActorCoreType;

ActorCoreObject* core_of(PyObject* object) { return reinterpret_cast<ActorCoreObject*>(object); }

PyObject* new_core(worker::Actor actor) {
  auto* core = PyObject_New(ActorCoreObject, &ActorCoreType);
  if (!core) return nullptr;
  new (&core->actor) worker::Actor(std::move(actor));
  core->session = g_runtime.session;
  return reinterpret_cast<PyObject*>(core);
}

// ActorCore(actor id bytes, handle ObjectRef or None)
PyObject* core_new(PyTypeObject*, PyObject* args, PyObject*) {
  const char* bytes;
  Py_ssize_t size;
  PyObject* handle;
  if (!PyArg_ParseTuple(args, "y#O", &bytes, &size, &handle)) return nullptr;
  std::string_view id(bytes, size);
  if (!ActorId::is_valid(id))
    return PyErr_Format(PyExc_ValueError, "an actor id has %zu bytes", ActorId::kSize);
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  worker::Ref ref;
  if (is_object_ref(handle)) ref = as_object_ref(handle)->ref;
  return new_core(worker->actor_from(ActorId::from_binary(id), std::move(ref)));
}

PyObject* find_actor(PyObject*, PyObject* id_bytes) {
  std::string bytes;
  if (!to_string(id_bytes, &bytes)) return nullptr;
  if (!ActorId::is_valid(bytes))
    return PyErr_Format(PyExc_ValueError, "an actor id has %zu bytes", ActorId::kSize);
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  const ActorId id = ActorId::from_binary(bytes);
  return new_core(worker->actor_from(id, worker->find(handle_object_of(id))));
}

void core_dealloc(PyObject* self) {
  core_of(self)->actor.~Actor();
  Py_TYPE(self)->tp_free(self);
}

PyObject* core_id(PyObject* self, PyObject*) { return py_bytes(core_of(self)->actor.id.view()); }
PyObject* core_handle(PyObject* self, PyObject*) {
  if (!core_of(self)->actor.handle) Py_RETURN_NONE;
  return new_object_ref(core_of(self)->actor.handle);
}
PyObject* core_session(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(core_of(self)->session);
}

PyObject* core_kill(PyObject* self, PyObject* no_restart) {
  int flag = PyObject_IsTrue(no_restart);
  worker::Worker* worker = connected();
  if (!worker || flag < 0) return nullptr;
  Status status;
  {
    WithoutGil without_gil;
    status = worker->kill_actor(core_of(self)->actor.id, flag);
  }
  if (!status) return raise(status.error());
  Py_RETURN_NONE;
}

PyMethodDef kCoreMethods[] = {
    {"id", core_id, METH_NOARGS, "The actor's id: 16 bytes."},
    {"handle", core_handle, METH_NOARGS,
     "The counted reference to the actor, None for weak handles."},
    {"session", core_session, METH_NOARGS, "The session the handle belongs to."},
    {"kill", core_kill, METH_O, "kill(no_restart)"},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject ActorCoreType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ActorCore",
    .tp_basicsize = sizeof(ActorCoreObject),
    .tp_dealloc = core_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A counted hold on an actor.",
    .tp_methods = kCoreMethods,
    .tp_new = core_new,
};

template <class Arguments>
PyObject* create_with(worker::Worker& worker, worker::ActorOptions options, PyObject* args,
                      PyObject* kwargs) {
  const uint64_t session = g_runtime.session;
  Arguments call;
  if (!call.build(worker, args, kwargs) || !still_in(session)) return nullptr;
  std::optional<proto::ActorInfo> existing;
  Result<worker::Actor> actor = Error{};
  {
    WithoutGil without_gil;
    actor = worker.create_actor(std::move(options), call.args(), &existing);
  }
  if (!actor) return raise(actor.error());
  PyPtr core(new_core(std::move(*actor)));
  PyPtr fields(existing ? actor_info_to_dict(*existing) : Py_NewRef(Py_None));
  return core && fields ? PyTuple_Pack(2, core.get(), fields.get()) : nullptr;
}

// create_actor(spec, get_if_exists, args, kwargs) -> (ActorCore, the info dict of an actor that
// existed, or None)
PyObject* create_actor(PyObject*, PyObject* tuple) {
  PyObject *spec, *args, *kwargs;
  int get_if_exists;
  if (!PyArg_ParseTuple(tuple, "O!pOO", &PyDict_Type, &spec, &get_if_exists, &args, &kwargs))
    return nullptr;
  worker::Worker* worker = connected();
  worker::ActorOptions options;
  options.get_if_exists = get_if_exists;
  if (!worker || !actor_from_dict(spec, &options.spec)) return nullptr;
  auto create = [&] {
    if (options.spec.creation().function().language() == proto::LANGUAGE_PYTHON)
      return create_with<CallArgs>(*worker, std::move(options), args, kwargs);
    return create_with<PlainCallArgs>(*worker, std::move(options), args, kwargs);
  };
  return g_runtime.profiles ? record("submit_task", create) : create();
}

// get_actor(name, namespace) -> (ActorCore, info dict), or None when there is no such actor; the
// caller words the ValueError.
PyObject* get_actor(PyObject*, PyObject* tuple) {
  PyObject *name_object, *namespace_object;
  std::string name, ray_namespace;
  if (!PyArg_ParseTuple(tuple, "UU", &name_object, &namespace_object) ||
      !to_string(name_object, &name) || !to_string(namespace_object, &ray_namespace))
    return nullptr;
  worker::Worker* worker = connected();
  if (!worker) return nullptr;
  proto::ActorInfo info;
  Result<worker::Actor> actor = Error{};
  {
    WithoutGil without_gil;
    actor = worker->get_actor(name, ray_namespace, &info);
  }
  if (!actor && actor.error().code == Code::kNotFound) Py_RETURN_NONE;
  if (!actor) return raise(actor.error());
  PyPtr core(new_core(std::move(*actor))), fields(actor_info_to_dict(info));
  return core && fields ? PyTuple_Pack(2, core.get(), fields.get()) : nullptr;
}

struct MethodObject {
  PyObject_HEAD Prepared prepared;
  PyObject* core;
  worker::Worker::MethodOptions options;
};

MethodObject* method_of(PyObject* object) { return reinterpret_cast<MethodObject*>(object); }

void method_dealloc(PyObject* self) {
  Py_CLEAR(method_of(self)->core);
  Py_TYPE(self)->tp_free(self);
}

// _bind(template, min_args, max_args); _target(core, max_task_retries, max_pending_calls,
// out_of_order)
PyObject* method_bind(PyObject* self, PyObject* args) {
  if (!bind(&method_of(self)->prepared, args)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* method_target(PyObject* self, PyObject* args) {
  MethodObject* method = method_of(self);
  PyObject* core;
  long long retries, pending;
  int out_of_order;
  if (!PyArg_ParseTuple(args, "O!LLp", &ActorCoreType, &core, &retries, &pending, &out_of_order))
    return nullptr;
  Py_XSETREF(method->core, Py_NewRef(core));
  method->options = {retries, pending, out_of_order != 0};
  Py_RETURN_NONE;
}

template <class Arguments>
PyObject* submit_method(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                        PyObject* names) {
  MethodObject* method = method_of(self);
  Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
  if (!method->core)
    return PyErr_Format(PyExc_RuntimeError,
                        "this ActorMethod is not bound to an actor: call it on an actor handle");
  if (!prepare(self, method->prepared)) return nullptr;
  const uint64_t session = method->prepared.session;
  if (!check_arguments(self, method->prepared, args, count, names) || !still_in(session))
    return nullptr;
  worker::Worker& worker = *g_runtime.worker;
  Arguments call;
  if (!call.build(worker, args, count, names) || !still_in(session)) return nullptr;
  if (in_event_loop()) submit_for_coroutine();
  std::vector<worker::Ref> returns;
  Status status;
  {
    WithoutGil without_gil(call.is_large());
    status = worker.submit_method(core_of(method->core)->actor.id, method->prepared.value,
                                  method->options, call.args(), &returns);
  }
  if (!status) return raise(status.error());
  return method->prepared.streaming ? new_object_ref_generator(returns) : refs_of_returns(returns);
}

template <class Arguments>
PyObject* method_remote(PyObject* self, PyObject* const* args, Py_ssize_t positional,
                        PyObject* names) {
  if (g_runtime.profiles) [[unlikely]]
    return record("submit_task",
                  [=] { return submit_method<Arguments>(self, args, positional, names); });
  return submit_method<Arguments>(self, args, positional, names);
}

PyMethodDef kMethodMethods[] = {
    {"remote", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_remote<CallArgs>)),
     METH_FASTCALL | METH_KEYWORDS,
     "Calls the method on the actor; returns the result's ObjectRef (a list of them for "
     "num_returns > 1)."},
    {"_bind", method_bind, METH_VARARGS, nullptr},
    {"_target", method_target, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject MethodType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.MethodBase",
    .tp_basicsize = sizeof(MethodObject),
    .tp_dealloc = method_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The submitting half of an ActorMethod.",
    .tp_methods = kMethodMethods,
    .tp_new = PyType_GenericNew,
};

PyMethodDef kForeignMethodMethods[] = {
    {"remote", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_remote<PlainCallArgs>)),
     METH_FASTCALL | METH_KEYWORDS,
     "Calls the method on an actor of another language; returns the result's ObjectRef."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject ForeignMethodType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.ForeignMethodBase",
    .tp_basicsize = sizeof(MethodObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "The submitting half of a method of an actor of another language.",
    .tp_methods = kForeignMethodMethods,
    .tp_base = &MethodType,
};

PyMethodDef kRemoteCallsFunctions[] = {{"make_template", make_template, METH_O,
                                        "The Template of a dict of proto TaskTemplate fields."},
                                       {"scheduling_strategies", scheduling_strategies, METH_NOARGS,
                                        "The names that scheduling_strategy= takes."},
                                       {"create_actor", create_actor, METH_VARARGS, nullptr},
                                       {"get_actor", get_actor, METH_VARARGS, nullptr},
                                       {"find_actor", find_actor, METH_O,
                                        "The ActorCore of an id: counted if this process counts "
                                        "the actor already, else weak."},
                                       {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_calls(PyObject* module) {
  for (PyTypeObject* type : {&TemplateType, &FunctionType, &ForeignFunctionType, &ActorCoreType,
                             &MethodType, &ForeignMethodType}) {
    if (PyType_Ready(type) < 0 || PyModule_AddType(module, type) < 0) return false;
  }
  return add_remote_attribute(&FunctionType, function_remote<CallArgs>) &&
         PyModule_AddFunctions(module, kRemoteCallsFunctions) == 0;
}

}  // namespace rt::python
