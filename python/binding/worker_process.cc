// The worker process as Python sees it: run_worker(), the calls of asyncio actors, and what the
// running task is.
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "common/base/start_variables.h"
#include "python/binding/executor.h"
#include "python/binding/runtime.h"
#include "python/binding/specs.h"
#include "worker/core/death.h"

namespace rt::python {
namespace {

// Made once and never destroyed, because pool threads may still use it.
PythonExecutor* g_executor = nullptr;

// Describes what code runs in: a task, or this process, which belongs to its actor or to the job
// whose task began last. Without `names` the function is left out.
PyObject* context_to_dict(const PythonExecutor::Context& context, const TaskId& task, int attempt,
                          bool names) {
  PyPtr dict(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  const proto::TaskTemplate& spec = names ? *context.spec : proto::TaskTemplate::default_instance();
  set_item(d, "task_id", py_bytes(task.view()));
  set_item(d, "name", py_text(spec.name()));
  set_item(d, "task_name", py_text(names ? worker::task_name(spec) : ""));
  set_item(d, "module", py_text(spec.function().module()));
  set_item(d, "function_name", py_text(spec.function().name()));
  set_item(d, "class_name", py_text(spec.function().class_name()));
  set_item(d, "attempt", PyLong_FromLong(attempt));
  set_item(d, "resources", resources_to_dict(context.spec->resources()));
  set_item(d, "gpu_ids", py_texts(context.gpu_ids));
  set_item(d, "job_id", py_bytes(context.job_id));
  set_item(d, "namespace", py_text(context.job_namespace));
  if (const auto* actor = context.actor) {
    set_item(d, "actor_id", py_bytes(actor->actor_id()));
    set_item(d, "actor_name", py_text(actor->name()));
    set_item(d, "actor_namespace", py_text(actor->ray_namespace()));
    set_item(d, "actor_resources", resources_to_dict(actor->creation().resources()));
    set_item(d, "actor_restarts", PyLong_FromLongLong(context.actor_restarts));
    set_item(d, "handle_blob", py_bytes(actor->handle_blob()));
  }
  return PyErr_Occurred() ? nullptr : dict.release();
}

PyObject* task_to_dict(const worker::ExecutingTask& task) {
  const proto::JobConfig& job = task.job_config();
  return context_to_dict({.spec = &task.spec(),
                          .actor = task.actor_spec(),
                          .actor_restarts = task.actor_restarts(),
                          .job_id = job.job_id(),
                          .job_namespace = job.ray_namespace(),
                          .gpu_ids = task.gpu_ids()},
                         task.id(), task.attempt(), true);
}

// AsyncCall: one call of an asyncio actor, between its arrival and its reply.
struct AsyncCallObject {
  PyObject_HEAD std::unique_ptr<worker::ExecutingTask> task;  // Null when the call is answered.
  TaskId id;
  int attempt;
  const proto::TaskTemplate* spec;  // Lives as long as the process.
  int group;  // The call counts against the limit of this group until it is answered.
  bool cancel_taken;
};

AsyncCallObject* async_call_of(PyObject* object) {
  return reinterpret_cast<AsyncCallObject*>(object);
}

void answer(AsyncCallObject* call) {
  if (!call->task) return;
  call->task.reset();
  g_executor->queue().done(call->group);
}

void call_dealloc(PyObject* self) {
  answer(async_call_of(self));
  std::destroy_at(&async_call_of(self)->task);
  Py_TYPE(self)->tp_free(self);
}

bool pending(PyObject* self) {
  if (async_call_of(self)->task) return true;
  PyErr_SetString(PyExc_RuntimeError, "the call is answered already");
  return false;
}

PyObject* call_begin(PyObject* self, PyObject*) {
  if (!pending(self)) return nullptr;
  worker::submit_for(async_call_of(self)->task->id());
  PyPtr coroutine = g_executor->begin(*async_call_of(self)->task);
  worker::submit_for(TaskId::nil());
  if (coroutine) return coroutine.release();
  answer(async_call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_finish(PyObject* self, PyObject* result) {
  if (!pending(self)) return nullptr;
  g_executor->finish(*async_call_of(self)->task, result);
  answer(async_call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_fail(PyObject* self, PyObject* exception) {
  if (!pending(self)) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  g_executor->fail_with_exception(*async_call_of(self)->task);
  answer(async_call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_item(PyObject* self, PyObject* item) {
  if (!pending(self) || !g_executor->yield_item(*async_call_of(self)->task, item)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* call_end(PyObject* self, PyObject*) {
  if (!pending(self)) return nullptr;
  async_call_of(self)->task->executed();
  g_executor->end_of_items(*async_call_of(self)->task);
  answer(async_call_of(self));
  Py_RETURN_NONE;
}

PyObject* call_cancelled(PyObject* self, PyObject*) {
  return PyBool_FromLong(async_call_of(self)->task && async_call_of(self)->task->cancelled());
}

PyObject* call_take_cancel(PyObject* self, PyObject*) {
  AsyncCallObject* call = async_call_of(self);
  if (!call->task || call->cancel_taken || !call->task->cancelled()) Py_RETURN_FALSE;
  call->cancel_taken = true;
  Py_RETURN_TRUE;
}

PyObject* call_info(PyObject* self, PyObject*) {
  const AsyncCallObject* call = async_call_of(self);
  if (call->task) return task_to_dict(*call->task);
  // The call is answered, and an asyncio task that it started has outlived it.
  PythonExecutor::Context context = g_executor->context();
  context.spec = call->spec;
  return context_to_dict(context, call->id, call->attempt, true);
}

PyMethodDef kAsyncCallMethods[] = {
    {"begin", call_begin, METH_NOARGS,
     "Calls the method: a coroutine or async generator to run, or None when the call is answered."},
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
    .tp_methods = kAsyncCallMethods,
};

// Reads the number of a group of this process's asyncio actor. False with a Python error.
bool read_group(PyObject* object, int* group) {
  const int64_t number = PyLong_AsLongLong(object);
  const auto count = static_cast<int64_t>(g_executor ? g_executor->queue().groups().size() : 0);
  if (number < 0 || number >= count)
    return PyErr_Occurred() ||
               PyErr_Format(PyExc_ValueError, "no concurrency group has this number"),
           false;
  *group = static_cast<int>(number);
  return true;
}

PyObject* take_calls(PyObject*, PyObject* of) {
  int group;
  if (!read_group(of, &group)) return nullptr;
  auto started = g_executor->queue().take_all(group);
  PyPtr list(PyList_New(started.size()));
  for (size_t i = 0; list && i < started.size(); ++i) {
    auto* call = PyObject_New(AsyncCallObject, &AsyncCallType);
    if (!call) return nullptr;
    std::construct_at(&call->task, std::move(started[i].call));
    call->id = call->task->id();
    call->attempt = static_cast<int>(call->task->attempt());
    call->spec = &call->task->spec();
    call->group = started[i].group;
    call->cancel_taken = false;
    PyList_SET_ITEM(list.get(), i, reinterpret_cast<PyObject*>(call));
  }
  return list.release();
}

PyObject* take_cancel_news(PyObject*, PyObject* of) {
  int group;
  return read_group(of, &group) ? PyBool_FromLong(g_executor->queue().take_cancel_news(group))
                                : nullptr;
}

PyObject* call_queue_fd(PyObject*, PyObject* of) {
  int group;
  return read_group(of, &group) ? PyLong_FromLong(g_executor->queue().fd(group)) : nullptr;
}

PyObject* run_worker(PyObject*, PyObject*) {
  worker::Worker* worker = g_runtime.worker.get();
  if (!worker)
    return raise(make_error(Code::kUnavailable, "run_worker: this process is not connected"));
  if (!g_executor) g_executor = new PythonExecutor(*worker);
  int code;
  {
    GilRelease release;
    code = worker->run(*g_executor);
  }
  return PyLong_FromLong(code);
}

void (*g_python_handler)(int) = nullptr;
// The worker that SIGTERM ends.
std::atomic<worker::Worker*> g_sigterm_worker{nullptr};

void on_terminate(int number) {
  const int kept_errno = errno;
  if (worker::Worker* worker = g_sigterm_worker) worker->end_by_signal();
  g_python_handler(number);
  errno = kept_errno;
}

// Makes SIGTERM end this worker even where no Python code runs. To be called after
// signal.signal(); the interpreter's handler is called as well.
PyObject* end_on_sigterm(PyObject*, PyObject*) {
  struct sigaction action{};
  sigaction(SIGTERM, nullptr, &action);
  if ((action.sa_flags & SA_SIGINFO) || action.sa_handler == SIG_DFL ||
      action.sa_handler == SIG_IGN)
    return PyErr_Format(
        PyExc_RuntimeError,
        "SIGTERM has no Python handler: call signal.signal(SIGTERM, ...) before end_on_sigterm()");
  if (action.sa_handler != on_terminate) g_python_handler = action.sa_handler;
  g_sigterm_worker = g_runtime.worker.get();
  action.sa_handler = on_terminate;
  sigaction(SIGTERM, &action, nullptr);
  Py_RETURN_NONE;
}

PyObject* in_task(PyObject*, PyObject*) { return PyBool_FromLong(current_task() != nullptr); }

PyObject* flush_before_exit(PyObject*, PyObject*) {
  if (worker::Worker* worker = g_runtime.worker.get()) {
    GilRelease release;
    worker->flush_before_exit();
  }
  Py_RETURN_NONE;
}

PyObject* leaves_by_itself(PyObject*, PyObject*) {
  return PyBool_FromLong(g_runtime.worker && g_runtime.worker->leaves_by_itself());
}

// The instance of this process's actor, once, after run_worker() has returned; else None.
PyObject* take_actor(PyObject*, PyObject*) {
  PyPtr instance;
  if (g_executor) instance = g_executor->take_instance();
  return instance ? instance.release() : Py_NewRef(Py_None);
}

PyObject* leave_actor(PyObject*, PyObject* why) {
  std::string message;
  if (!to_string(why, &message)) return nullptr;
  // A constructor that fails so is answered to the node-manager, which then ends the process.
  const auto* task = current_task();
  if (g_executor && !(task && task->is_actor_creation())) g_executor->leave(message);
  Py_RETURN_NONE;
}

PyObject* run_pool_thread(PyObject*, PyObject*) {
  g_executor->run_thread();
  Py_RETURN_NONE;
}

PyObject* log_marker(PyObject*, PyObject*) {
  PyObject* marker = g_executor ? g_executor->log_markers().of_function() : nullptr;
  return Py_NewRef(marker ? marker : Py_None);
}

PyObject* log_task(PyObject*, PyObject*) {
  return g_executor ? g_executor->log_markers().of_writer().release() : Py_NewRef(Py_None);
}

PyObject* note_open_line(PyObject*, PyObject*) {
  if (g_executor) g_executor->log_markers().note_open_line();
  Py_RETURN_NONE;
}

PyObject* take_cancel(PyObject*, PyObject*) {
  const TaskId task = g_executor ? g_executor->interrupt().take() : TaskId::nil();
  if (task.is_nil()) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(task.view().data(), TaskId::kSize);
}

PyObject* postpone_cancel(PyObject*, PyObject*) {
  if (g_executor) g_executor->interrupt().postpone();
  Py_RETURN_NONE;
}

PyObject* task_cancelled(PyObject*, PyObject*) {
  return PyBool_FromLong(current_task() && current_task()->cancelled());
}

PyObject* task_info(PyObject*, PyObject*) {
  if (!current_task()) Py_RETURN_NONE;
  return task_to_dict(*current_task());
}

PyObject* process_info(PyObject*, PyObject*) {
  if (!g_executor || !g_executor->context().spec) Py_RETURN_NONE;
  return context_to_dict(g_executor->context(), g_executor->log_markers().last_task(), 0, false);
}

PyObject* set_parent_death_signal(PyObject*, PyObject* signum) {
  const long number = PyLong_AsLong(signum);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  if (::prctl(PR_SET_PDEATHSIG, number) != 0) return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

// read_at_start(name, whether math libraries have been loaded)
PyObject* read_at_start(PyObject*, PyObject* args) {
  const char* name;
  int libraries;
  if (!PyArg_ParseTuple(args, "sp", &name, &libraries)) return nullptr;
  return PyBool_FromLong(is_read_at_start(name) || (libraries && is_read_by_math_libraries(name)));
}

PyMethodDef kWorkerProcessFunctions[] = {
    {"read_at_start", read_at_start, METH_VARARGS,
     "read_at_start(name, libraries loaded): whether a variable that is set now comes too late."},
    {"set_parent_death_signal", set_parent_death_signal, METH_O,
     "This process gets the signal when its parent ends; 0: none."},
    {"run_worker", run_worker, METH_NOARGS,
     "Executes tasks until told to exit; returns the exit code."},
    {"end_on_sigterm", end_on_sigterm, METH_NOARGS,
     "SIGTERM ends run_worker(), too, which returns -SIGTERM."},
    {"in_task", in_task, METH_NOARGS, "Whether this thread executes a task."},
    {"flush_before_exit", flush_before_exit, METH_NOARGS,
     "Sends what this process has finished: it ends at once, without run_worker() returning."},
    {"leaves_by_itself", leaves_by_itself, METH_NOARGS,
     "Whether run_worker() has returned because it was asked to, with everything answered."},
    {"take_actor", take_actor, METH_NOARGS,
     "The actor's instance, which nothing of ours refers to any more; None in other processes."},
    {"leave_actor", leave_actor, METH_O,
     "Ends the actor of this process by its own wish, for the given reason; returns at once."},
    {"run_pool_thread", run_pool_thread, METH_NOARGS, "The life of a thread of a threaded actor."},
    {"take_calls", take_calls, METH_O,
     "The calls of a concurrency group that the asyncio actor of this process is to start now."},
    {"take_cancel_news", take_cancel_news, METH_O,
     "Whether calls were cancelled since this group's last question."},
    {"call_queue_fd", call_queue_fd, METH_O,
     "Readable when take_calls() or take_cancel_news() has something."},
    {"log_marker", log_marker, METH_NOARGS, "The marker line of what ran last."},
    {"log_task", log_task, METH_NOARGS,
     "The marker line of the task that prints, ':task_id:' alone when none does."},
    {"note_open_line", note_open_line, METH_NOARGS,
     "Text without a newline was printed, which is flushed before the answer of the task."},
    {"take_cancel", take_cancel, METH_NOARGS,
     "The id of the task whose cancellation asked for the interrupt that just came, or None."},
    {"postpone_cancel", postpone_cancel, METH_NOARGS,
     "Undoes take_cancel(): the interrupt comes again later."},
    {"task_cancelled", task_cancelled, METH_NOARGS,
     "Whether the task of this thread was cancelled."},
    {"task_info", task_info, METH_NOARGS,
     "The task of this thread as a dict; None outside of tasks."},
    {"process_info", process_info, METH_NOARGS,
     "The same of this process, for threads that are no task's: its actor, its job, the resources "
     "of the task that began last. None before that."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

worker::ExecutingTask* coroutine_task() {
  static PyObject* current = import_attribute("ray._private.async_actor", "current_call").release();
  PyObject* call = nullptr;
  if (!current || PyContextVar_Get(current, nullptr, &call) < 0) PyErr_Clear();
  PyPtr held(call);
  return held && Py_IS_TYPE(held.get(), &AsyncCallType) ? async_call_of(held.get())->task.get()
                                                        : nullptr;
}

void submit_for_coroutine() {
  const worker::ExecutingTask* task = coroutine_task();
  worker::submit_for(task ? task->id() : TaskId::nil());
}

bool add_executor(PyObject* module) {
  return PyType_Ready(&AsyncCallType) == 0 &&
         PyModule_AddFunctions(module, kWorkerProcessFunctions) == 0;
}

}  // namespace rt::python
