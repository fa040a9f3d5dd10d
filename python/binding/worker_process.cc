// The worker process as Python sees it: run_worker(), the calls of asyncio actors, what the running task is.
#include <new>

#include "python/binding/executor.h"
#include "python/binding/runtime.h"
#include "python/binding/specs.h"
#include "worker/core/death.h"

namespace rt::python {
namespace {

PythonExecutor* g_executor = nullptr;    // made once, never destroyed: pool threads may still look at it

PyObject* task_to_dict(const worker::ExecutingTask& task) {
  PyPtr dict(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  const auto& spec = task.spec();
  set_item(d, "task_id", py_bytes(task.id().view()));
  set_item(d, "name", py_text(spec.name()));
  set_item(d, "task_name", py_text(worker::task_name(spec)));
  set_item(d, "module", py_text(spec.function().module()));
  set_item(d, "function_name", py_text(spec.function().name()));
  set_item(d, "class_name", py_text(spec.function().class_name()));
  set_item(d, "attempt", PyLong_FromLong(task.attempt()));
  set_item(d, "resources", resources_to_dict(spec.resources()));
  set_item(d, "gpu_ids", py_texts(task.gpu_ids()));
  set_item(d, "job_id", py_bytes(task.job_config().job_id()));
  set_item(d, "namespace", py_text(task.job_config().ray_namespace()));
  if (const auto* actor = task.actor_spec()) {
    set_item(d, "actor_id", py_bytes(actor->actor_id()));
    set_item(d, "actor_name", py_text(actor->name()));
    set_item(d, "actor_namespace", py_text(actor->ray_namespace()));
    set_item(d, "actor_resources", resources_to_dict(actor->creation().resources()));
    set_item(d, "actor_restarts", PyLong_FromLongLong(task.actor_restarts()));
    set_item(d, "handle_blob", py_bytes(actor->handle_blob()));
  }
  return PyErr_Occurred() ? nullptr : dict.release();
}

// ---- AsyncCall: one call of an asyncio actor, between its arrival and its reply

struct AsyncCallObject {
  PyObject_HEAD
  worker::ExecutingTask* task;     // owned; null when answered
  int group;                       // whose limit it counts against until then
  bool cancel_taken;
};

AsyncCallObject* call_of(PyObject* object) { return reinterpret_cast<AsyncCallObject*>(object); }

void answer(AsyncCallObject* call) {
  if (!call->task) return;
  delete std::exchange(call->task, nullptr);
  g_executor->queue().done(call->group);
}

void call_dealloc(PyObject* self) {
  answer(call_of(self));
  Py_TYPE(self)->tp_free(self);
}

bool pending(PyObject* self) {
  if (call_of(self)->task) return true;
  PyErr_SetString(PyExc_RuntimeError, "the call is answered already");
  return false;
}

PyObject* call_begin(PyObject* self, PyObject*) {
  if (!pending(self)) return nullptr;
  worker::submit_for(call_of(self)->task->id());
  PyPtr coroutine = g_executor->begin(*call_of(self)->task);
  worker::submit_for(TaskId::nil());
  if (coroutine) return coroutine.release();
  answer(call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_finish(PyObject* self, PyObject* result) {
  if (!pending(self)) return nullptr;
  g_executor->finish(*call_of(self)->task, result);
  answer(call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_fail(PyObject* self, PyObject* exception) {
  if (!pending(self)) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  g_executor->fail_with_exception(*call_of(self)->task);
  answer(call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_item(PyObject* self, PyObject* item) {
  if (!pending(self) || !g_executor->yield_item(*call_of(self)->task, item)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* call_end(PyObject* self, PyObject*) {
  if (!pending(self)) return nullptr;
  call_of(self)->task->executed();
  g_executor->end_of_items(*call_of(self)->task);
  answer(call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_cancelled(PyObject* self, PyObject*) { return PyBool_FromLong(call_of(self)->task && call_of(self)->task->cancelled()); }

PyObject* call_take_cancel(PyObject* self, PyObject*) {
  AsyncCallObject* call = call_of(self);
  if (!call->task || call->cancel_taken || !call->task->cancelled()) Py_RETURN_FALSE;
  call->cancel_taken = true;
  Py_RETURN_TRUE;
}

PyObject* call_info(PyObject* self, PyObject*) {
  if (!pending(self)) return nullptr;
  return task_to_dict(*call_of(self)->task);
}

PyMethodDef kCallMethods[] = {
    {"begin", call_begin, METH_NOARGS, "Calls the method: a coroutine or async generator to run, or None when the call is answered."},
    {"finish", call_finish, METH_O, nullptr},
    {"fail", call_fail, METH_O, nullptr},
    {"item", call_item, METH_O, "Sends what its generator yielded."},
    {"end", call_end, METH_NOARGS, "Its generator has ended."},
    {"info", call_info, METH_NOARGS, nullptr},
    {"cancelled", call_cancelled, METH_NOARGS, "Whether its caller has cancelled it."},
    {"take_cancel", call_take_cancel, METH_NOARGS, "The same, but true once."},
    {nullptr, nullptr, 0, nullptr}};

PyTypeObject AsyncCallType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "ray._raylet.AsyncCall",
    .tp_basicsize = sizeof(AsyncCallObject),
    .tp_dealloc = call_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A call of an asyncio actor that has not been answered.",
    .tp_methods = kCallMethods,
};

PyObject* take_calls(PyObject*, PyObject*) {
  auto started = g_executor->queue().take_all();
  PyPtr list(PyList_New(started.size()));
  for (size_t i = 0; list && i < started.size(); ++i) {
    auto* call = PyObject_New(AsyncCallObject, &AsyncCallType);
    if (!call) return nullptr;
    call->task = started[i].call.release();
    call->group = started[i].group;
    call->cancel_taken = false;
    PyList_SET_ITEM(list.get(), i, reinterpret_cast<PyObject*>(call));
  }
  return list.release();
}

PyObject* take_cancel_news(PyObject*, PyObject*) { return PyBool_FromLong(g_executor->queue().take_cancel_news()); }

PyObject* call_queue_fd(PyObject*, PyObject*) { return PyLong_FromLong(g_executor->queue().fd()); }

PyObject* run_worker(PyObject*, PyObject*) {
  worker::Worker* worker = g_runtime.worker.get();
  if (!worker) return raise(make_error(Code::kUnavailable, "run_worker: this process is not connected"));
  if (!g_executor) g_executor = new PythonExecutor(*worker);
  int code;
  {
    GilRelease release;
    code = worker->run(*g_executor);
  }
  return PyLong_FromLong(code);
}

PyObject* flush_before_exit(PyObject*, PyObject*) {
  if (worker::Worker* worker = g_runtime.worker.get()) {
    GilRelease release;
    worker->flush_before_exit();
  }
  Py_RETURN_NONE;
}

// The instance, when the actor of this process leaves by itself and run_worker() has returned; None otherwise, and afterwards.
PyObject* take_actor(PyObject*, PyObject*) {
  worker::Worker* worker = g_runtime.worker.get();
  PyPtr instance;
  if (g_executor && worker && worker->leaves_by_itself()) instance = g_executor->take_instance();
  return instance ? instance.release() : Py_NewRef(Py_None);
}

PyObject* run_pool_thread(PyObject*, PyObject*) {
  g_executor->run_thread();
  Py_RETURN_NONE;
}

PyObject* log_marker(PyObject*, PyObject*) {
  PyObject* marker = g_executor ? g_executor->log_marker() : nullptr;
  return Py_NewRef(marker ? marker : Py_None);
}

PyObject* log_task(PyObject*, PyObject*) { return g_executor ? g_executor->task_marker().release() : Py_NewRef(Py_None); }

PyObject* take_cancel(PyObject*, PyObject*) { return PyBool_FromLong(g_executor && g_executor->take_cancel()); }

PyObject* task_cancelled(PyObject*, PyObject*) { return PyBool_FromLong(current_task() && current_task()->cancelled()); }

PyObject* task_info(PyObject*, PyObject*) {
  if (!current_task()) Py_RETURN_NONE;
  return task_to_dict(*current_task());
}

PyMethodDef kFunctions[] = {
    {"run_worker", run_worker, METH_NOARGS, "Executes tasks until told to exit; returns the exit code."},
    {"flush_before_exit", flush_before_exit, METH_NOARGS, "Sends what this process has finished: it ends at once, without run_worker() returning."},
    {"take_actor", take_actor, METH_NOARGS, "The actor's instance, which nothing of ours refers to any more; None when it is not to end gracefully."},
    {"run_pool_thread", run_pool_thread, METH_NOARGS, "The life of a thread of a threaded actor."},
    {"take_calls", take_calls, METH_NOARGS, "The calls that the asyncio actor of this process is to start now."},
    {"take_cancel_news", take_cancel_news, METH_NOARGS, "Whether calls were cancelled since the last time."},
    {"call_queue_fd", call_queue_fd, METH_NOARGS, "Readable when take_calls() or take_cancel_news() has something."},
    {"log_marker", log_marker, METH_NOARGS, "The marker line of what ran last."},
    {"log_task", log_task, METH_NOARGS, "The marker line of the task that prints, ':task_id:' alone when none does."},
    {"take_cancel", take_cancel, METH_NOARGS, "Whether ray.cancel asked for the interrupt that just came."},
    {"task_cancelled", task_cancelled, METH_NOARGS, "Whether the task of this thread was cancelled."},
    {"task_info", task_info, METH_NOARGS, "The task of this thread as a dict; None outside of tasks."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

worker::ExecutingTask* coroutine_task() {
  static PyObject* current = import_attribute("ray._private.async_actor", "current_call").release();
  PyObject* call = nullptr;
  if (!current || PyContextVar_Get(current, nullptr, &call) < 0) PyErr_Clear();
  PyPtr held(call);
  return held && Py_IS_TYPE(held.get(), &AsyncCallType) ? call_of(held.get())->task : nullptr;
}

void submit_for_coroutine() {
  const worker::ExecutingTask* task = coroutine_task();
  worker::submit_for(task ? task->id() : TaskId::nil());
}

bool add_executor(PyObject* module) { return PyType_Ready(&AsyncCallType) == 0 && PyModule_AddFunctions(module, kFunctions) == 0; }

}  // namespace rt::python
