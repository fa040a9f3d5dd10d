#include "python/binding/executor.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/resources/resource_set.h"
#include "python/binding/call.h"
#include "python/binding/runtime.h"
#include "python/binding/serialize.h"
#include "worker/core/death.h"
#include "worker/core/generator_stream.h"

namespace rt::python {
namespace {

constexpr const char* kReturnRole = "the return value";  // As named in errors.
thread_local worker::ExecutingTask* t_task = nullptr;

class CurrentTask {
 public:
  explicit CurrentTask(worker::ExecutingTask* task) : outer_(std::exchange(t_task, task)) {
    worker::submit_for(task->id());
  }
  ~CurrentTask() {
    t_task = outer_;
    worker::submit_for(TaskId::nil());
  }

 private:
  worker::ExecutingTask* outer_;
};

std::string display_name(const worker::ExecutingTask& task) {
  return worker::display_name(task.spec().function());
}

// Returns 0 for an actor's methods: their number is the one its constructor got, or has set.
int omp_threads(const worker::ExecutingTask& task) {
  if (task.actor_spec() && !task.is_actor_creation()) return 0;
  const auto& units = task.spec().resources().units();
  auto cpu = units.find("CPU");
  return cpu == units.end() ? 1
                            : std::max<int>(1, static_cast<int>(cpu->second / ResourceSet::kUnit));
}

bool shows_gpus(const worker::ExecutingTask& task) {
  static const char* blank = std::getenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO");
  bool method = task.actor_spec() && !task.is_actor_creation();
  return task.spec().resources().units().contains("GPU") ||
         (!method && blank && std::string_view(blank) == "1");
}

}  // namespace

worker::ExecutingTask* current_task() { return t_task; }

worker::ValueParts error_parts(const std::string& encoded) {
  worker::ValueParts parts;
  parts.kind = worker::ValueKind::kError;
  parts.inband = as_bytes(encoded);
  return parts;
}

CallQueue::~CallQueue() {
  for (const Loop& loop : loops_) ::close(loop.fd);
}

void CallQueue::configure(const proto::ActorSpec& spec) {
  MutexLock lock(mutex_);
  groups_.configure(spec.max_concurrency(),
                    {spec.concurrency_groups().begin(), spec.concurrency_groups().end()});
  for (int i = 0; spec.asyncio() && i < groups_.size(); ++i)
    loops_.push_back({.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)});
}

int CallQueue::capacity() const {
  MutexLock lock(mutex_);
  return groups_.capacity();
}

std::vector<std::string> CallQueue::groups() const {
  MutexLock lock(mutex_);
  return groups_.names();
}

int CallQueue::fd(int group) const {
  MutexLock lock(mutex_);
  return loops_[group].fd;
}

void CallQueue::signal(Loop& loop) {
  if (std::exchange(loop.signalled, true)) return;
  uint64_t one = 1;
  (void)!write(loop.fd, &one, sizeof one);
}

bool CallQueue::push(std::unique_ptr<worker::ExecutingTask> task) {
  bool served;
  {
    MutexLock lock(mutex_);
    if (closed_) return true;
    const int group = std::max(0, groups_.find(task->spec().concurrency_group()));
    groups_.add(group, std::move(task));
    if (!loops_.empty()) {
      if (groups_.startable(group) > 0) signal(loops_[group]);
      return true;
    }
    served = groups_.startable() <= idle_;
  }
  pushed_.notify_one();
  return served;
}

std::vector<CallQueue::Started> CallQueue::take_all(int group) {
  MutexLock lock(mutex_);
  uint64_t count;
  (void)!::read(loops_[group].fd, &count, sizeof count);
  loops_[group].signalled = false;
  std::vector<Started> taken;
  while (auto started = groups_.next(group)) taken.push_back(std::move(*started));
  return taken;
}

CallQueue::Started CallQueue::wait_one(int finished_group) {
  MutexLock lock(mutex_);
  if (finished_group >= 0) groups_.done(finished_group);
  std::optional<Started> started = groups_.next();
  ++idle_;
  for (; !started; started = groups_.next()) pushed_.wait(mutex_);
  --idle_;
  return std::move(*started);
}

void CallQueue::done(int group) {
  MutexLock lock(mutex_);
  groups_.done(group);
  if (groups_.startable(group) > 0) signal(loops_[group]);
}

void CallQueue::wake() {
  MutexLock lock(mutex_);
  for (Loop& loop : loops_) {
    loop.cancel_news = true;
    signal(loop);
  }
}

bool CallQueue::take_cancel_news(int group) {
  MutexLock lock(mutex_);
  return std::exchange(loops_[group].cancel_news, false);
}

void CallQueue::close() {
  // Destroyed after the mutex is released.
  std::vector<std::unique_ptr<worker::ExecutingTask>> dropped;
  MutexLock lock(mutex_);
  closed_ = true;
  dropped = groups_.take_waiting();
}

PythonExecutor::PythonExecutor(worker::Worker& worker)
    : worker_(worker), main_thread_(pthread_self()), interrupt_(main_thread_) {
  title_.set(idle_title_);
}

void PythonExecutor::execute(std::unique_ptr<worker::ExecutingTask> task) {
  if (task->is_actor_creation()) {
    const proto::ActorSpec& spec = *task->actor_spec();
    idle_title_ = "ray::" + spec.class_name();
    name_thread(idle_title_);
    GilAcquire gil;
    context_.actor = &spec;
    context_.actor_restarts = task->actor_restarts();
    if (worker::is_concurrent(spec)) start_concurrent(spec);
  }
  if (asyncio_) {
    queue_.push(std::move(task));
  } else if (threaded_ && !task->is_actor_creation()) {
    if (!queue_.push(std::move(task))) grow_pool();
  } else {
    run_here(std::move(task));
  }
}

void PythonExecutor::start_concurrent(const proto::ActorSpec& spec) {
  asyncio_ = spec.asyncio();
  threaded_ = !asyncio_;
  log_markers_.let_calls_overlap(asyncio_);
  queue_.configure(spec);
  // The title stays the same from here on, because the actor's calls overlap.
  title_.set(idle_title_);
  max_threads_ = queue_.capacity();
  if (!asyncio_) return;
  PyPtr args(Py_BuildValue("(N)", py_texts(queue_.groups())));
  if (!args || !call_python("ray._private.async_actor", "start", args.get())) PyErr_Print();
}

// The threads of the pool never end.
void PythonExecutor::grow_pool() {
  if (threads_ >= max_threads_) return;
  ++threads_;
  GilAcquire gil;
  PyPtr args(PyTuple_New(0));
  if (!call_python("ray._private.executor", "start_pool_thread", args.get())) PyErr_Print();
}

void PythonExecutor::run_thread() {
  int finished = -1;
  for (;;) {
    CallQueue::Started started;
    {
      GilRelease release;
      started = queue_.wait_one(finished);
    }
    {
      CurrentTask current(started.call.get());
      PyPtr coroutine = begin(*started.call);
    }
    finished = started.group;
    GilRelease release;
    started.call.reset();
  }
}

void PythonExecutor::run_here(std::unique_ptr<worker::ExecutingTask> task) {
  GilAcquire gil;
  CurrentTask current(task.get());
  PyPtr coroutine = begin(*task);
  title_.set(idle_title_);
  // The task is destroyed last and without the GIL, because its destructor sends the reply.
}

// A coroutine is cancelled by its loop, a plain task by KeyboardInterrupt. Methods of other actors
// ask is_canceled() themselves.
void PythonExecutor::cancel(const TaskId& id) {
  if (asyncio_) return queue_.wake();
  interrupt_.send(id);
}

bool PythonExecutor::enter_user_code(const worker::ExecutingTask& task) {
  interrupt_.enter(task.id());
  return !task.cancelled();
}

PyPtr PythonExecutor::begin(worker::ExecutingTask& task) {
  if (task.cancelled()) return fail_cancelled(task), PyPtr();
  FunctionSlot* slot = slot_of(task);
  if (!slot) return fail_with_exception(task), PyPtr();
  context_.spec = &task.spec();
  if (!log_markers_.task_begins(task, *slot)) return fail_with_exception(task), PyPtr();
  if (!log_markers_.calls_overlap()) title_.set(slot->title);
  if (!set_environment(task, *slot)) return fail_with_exception(task), PyPtr();
  PyPtr result = call(task, *slot);
  log_markers_.task_ended(*slot, task.took_us(), &result);
  if (!result) return fail_with_exception(task), PyPtr();
  if (asyncio_ && PyCoro_CheckExact(result.get())) return result;
  if (asyncio_ && task.num_returns() == worker::kStreamingReturns &&
      PyAsyncGen_CheckExact(result.get()))
    return result;
  // The call could not be interrupted.
  if (task.actor_spec() && task.cancelled()) return fail_cancelled(task), PyPtr();
  finish(task, result.get());
  return PyPtr();
}

// A process that user code forked, and in which that code returned, must end here: the worker's
// connections and its tasks belong to the parent.
void end_forked_twin() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_SystemExit)) PyErr_Print();
  PyErr_Clear();
  for (const char* name : {"stdout", "stderr"}) {
    PyObject* stream = PySys_GetObject(name);
    PyPtr flushed(stream ? PyObject_CallMethod(stream, "flush", nullptr) : nullptr);
    PyErr_Clear();
  }
  _exit(0);
}

static PyPtr call_user_code(FunctionSlot& slot, const PyPtr& args, const PyPtr& kwargs) {
  PyPtr result(PyObject_Call(slot.callable.get(), args.get(), kwargs.get()));
  if (g_runtime.forked) end_forked_twin();
  return result;
}

// Returns the function's result, or null with its exception. The arguments are gone when it
// returns.
PyPtr PythonExecutor::call(worker::ExecutingTask& task, FunctionSlot& slot) {
  PyPtr args, kwargs;
  bool loaded = load_call(task.args(), &args, &kwargs);
  task.args().clear();
  if (!loaded) return PyPtr();
  if (!task.started()) return PyErr_SetNone(PyExc_KeyboardInterrupt), PyPtr();
  PyPtr result;
  if (task.actor_spec()) {
    result = call_user_code(slot, args, kwargs);
  } else {
    if (enter_user_code(task)) {
      result = call_user_code(slot, args, kwargs);
    } else {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
    interrupt_.leave();
  }
  if (!asyncio_) task.executed();
  return result;
}

void PythonExecutor::finish(worker::ExecutingTask& task, PyObject* result) {
  int count = task.num_returns();
  if (count < 0) return yield_all(task, result);
  if (asyncio_) task.executed();
  if (!log_markers_.flush_open_line()) return fail_with_exception(task);
  if (task.is_actor_creation()) {
    instance_ = PyPtr::borrow(result);
    PyPtr args(PyTuple_Pack(1, result));
    actor_marker_ = call_python("ray._private.executor", "actor_marker", args.get());
    if (!actor_marker_) return fail_with_exception(task);
  }
  if (count == 0 || task.is_actor_creation()) return task.finish({});
  if (count == 1) {
    Serialized value;
    if (!value.encode(result, kReturnRole)) return fail_with_exception(task);
    GilRelease release(value.is_large());
    return task.finish({&value.parts, 1});
  }
  PyPtr args(Py_BuildValue("(Oi)", result, count));
  // The body of a generator runs in split_returns().
  if (!task.actor_spec() && !enter_user_code(task)) PyErr_SetNone(PyExc_KeyboardInterrupt);
  PyPtr split = PyErr_Occurred()
                    ? PyPtr()
                    : call_python("ray._private.executor", "split_returns", args.get());
  if (!task.actor_spec()) interrupt_.leave();
  if (!split) return fail_with_exception(task);
  PyObject* list = PyTuple_GET_ITEM(split.get(), 0);
  PyObject* failure = PyTuple_GET_ITEM(split.get(), 1);
  std::string error;
  if (failure != Py_None) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(failure)), failure);
    auto described = describe_failure(task);
    if (!described) return;
    error = std::move(described->error);
    if (described->retriable) return task.fail(error_parts(error), true);
  }
  std::vector<Serialized> values(count);
  std::vector<worker::ValueParts> parts;
  bool large = false;
  for (int i = 0; i < count; ++i) {
    if (i >= PyList_GET_SIZE(list)) {
      parts.push_back(error_parts(error));
      continue;
    }
    if (!values[i].encode(PyList_GET_ITEM(list, i), kReturnRole)) return fail_with_exception(task);
    parts.push_back(values[i].parts);
    large |= values[i].is_large();
  }
  GilRelease release(large);
  task.finish(parts);
}

// exit_actor(), sys.exit() and ray.cancel are no failures of user code. True when the exception
// was one of these and the task has been answered.
bool PythonExecutor::handle_exit(worker::ExecutingTask& task, PyObject* exception) {
  PyPtr args(Py_BuildValue("(OO)", exception, task.actor_spec() ? Py_True : Py_False));
  PyPtr text = call_python("ray._private.executor", "exit_reason", args.get());
  if (!text) return PyErr_Clear(), false;
  if (text.get() == Py_None) return false;
  std::string message;
  (void)to_string(text.get(), &message);
  leave(message);
  // The node-manager ends this process when it hears that there is no actor.
  PyPtr none(task.is_actor_creation() ? PyTuple_New(0) : nullptr);
  if (none && !call_python("ray._private.actor_end", "run_exit_functions", none.get()))
    PyErr_Print();
  proto::ActorInfo actor;
  if (const auto* spec = task.actor_spec()) *actor.mutable_spec() = *spec;
  actor.set_pid(getpid());
  proto::ExitInfo exit;
  exit.set_kind(proto::ExitInfo::INTENTIONAL);
  exit.set_message(message);
  exit.set_ip(worker_.context().node_ip);
  proto::ErrorValue error = worker::actor_death_error(
      nullptr, ActorId::from_binary(actor.spec().actor_id()), &actor, exit);
  error.set_function_name(display_name(task));
  error.set_task_id(task.id().binary());
  std::string inband = error.SerializeAsString();
  task.fail(error_parts(inband), false);
  return true;
}

void PythonExecutor::fail_cancelled(worker::ExecutingTask& task) {
  task.args().clear();
  proto::ErrorValue error;
  error.set_code(static_cast<int>(Code::kCancelled));
  error.set_message("Task " + task.spec().name() + " was cancelled.");
  error.set_function_name(display_name(task));
  error.set_task_id(task.id().binary());
  std::string inband = error.SerializeAsString();
  task.fail(error_parts(inband), false);
}

std::optional<PythonExecutor::Failure> PythonExecutor::describe_failure(
    worker::ExecutingTask& task) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (!log_markers_.flush_open_line()) {
    for (PyObject* before : {type, value, traceback}) Py_XDECREF(before);
    PyErr_Fetch(&type, &value, &traceback);
  }
  PyErr_NormalizeException(&type, &value, &traceback);
  PyPtr t(type), exception(value), tb(traceback);
  task.args().clear();
  if (!exception) exception = PyPtr::borrow(Py_None);
  if (tb) PyException_SetTraceback(exception.get(), tb.get());
  if (PyErr_GivenExceptionMatches(exception.get(), PyExc_BaseException) &&
      handle_exit(task, exception.get()))
    return std::nullopt;

  proto::ErrorValue error;
  error.set_code(worker::kTaskRaised);
  error.set_function_name(display_name(task));
  error.set_proctitle("ray::" + display_name(task));
  error.set_pid(getpid());
  error.set_ip(worker_.context().node_ip);
  error.set_task_id(task.id().binary());
  if (const auto* spec = task.actor_spec()) error.set_actor_id(spec->actor_id());
  auto* slot = static_cast<FunctionSlot*>(task.loaded_function().get());
  PyObject* retry_types = slot && slot->retry_types ? slot->retry_types.get() : Py_None;
  PyPtr args(Py_BuildValue("(OOONy#)", exception.get(), instance_ ? instance_.get() : Py_None,
                           retry_types, py_text(error.proctitle()), task.id().data(),
                           static_cast<Py_ssize_t>(TaskId::kSize)));
  PyPtr fields = call_python("ray._private.executor", "describe_error", args.get());
  bool retriable = false;
  const char *message, *text, *cause_class, *repr, *cause;
  Py_ssize_t cause_size;
  int matches;
  if (fields && PyArg_ParseTuple(fields.get(), "sssy#sp", &message, &text, &cause_class, &cause,
                                 &cause_size, &repr, &matches)) {
    error.set_message(message);
    error.set_traceback(text);
    error.set_cause_class(cause_class);
    error.set_cause(std::string(cause, cause_size));
    error.set_actor_repr(repr);
    retriable = task.spec().retry_exceptions() && matches && !task.cancelled();
  } else {
    PyErr_Clear();
    error.set_message("the task raised an exception that could not be described");
  }
  return Failure{error.SerializeAsString(), retriable};
}

void PythonExecutor::fail_with_exception(worker::ExecutingTask& task) {
  const auto failure = describe_failure(task);
  if (!failure) return;
  // Perhaps nobody ever calls the actor and learns of the error, so it is reported as well.
  if (task.is_actor_creation()) {
    worker::Value value;
    value.kind = worker::ValueKind::kError;
    value.inband = as_bytes(failure->error);
    (void)!load_value(value);
    PyObject *type = nullptr, *raised = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &raised, &traceback);
    PyErr_NormalizeException(&type, &raised, &traceback);
    PyPtr owned[] = {PyPtr(type), PyPtr(raised), PyPtr(traceback)};
    PyPtr args(PyTuple_Pack(1, raised ? raised : Py_None));
    PyPtr reported =
        args ? call_python("ray._private.executor", "report_creation_error", args.get()) : PyPtr();
    PyErr_Clear();
  }
  task.fail(error_parts(failure->error), failure->retriable);
}

PyPtr PythonExecutor::take_instance() {
  for (FunctionSlot* method : methods_) method->callable.reset();
  return std::move(instance_);
}

FunctionSlot* PythonExecutor::slot_of(worker::ExecutingTask& task) {
  std::unique_ptr<worker::LoadedFunction>& kept = task.loaded_function();
  if (!kept) {
    std::unique_ptr<FunctionSlot> loaded = load_slot(task);
    if (!loaded) return nullptr;
    // Loading runs Python code, during which another thread may have loaded the function, too, and
    // uses what is kept.
    if (!kept) {
      if (task.actor_spec() && !task.is_actor_creation()) methods_.push_back(loaded.get());
      kept = std::move(loaded);
    }
  }
  return static_cast<FunctionSlot*>(kept.get());
}

std::unique_ptr<FunctionSlot> PythonExecutor::load_slot(worker::ExecutingTask& task) {
  if (!apply_job(task.job_config())) return nullptr;
  const proto::TaskTemplate& spec = task.spec();
  auto slot = std::make_unique<FunctionSlot>();
  std::string name = worker::task_name(spec);
  slot->title = "ray::" + name;
  slot->omp_threads = omp_threads(task);
  slot->shows_gpus = shows_gpus(task);
  // Set first, because loading the function may import code that looks at it.
  if (slot->shows_gpus && !set_environment(task, *slot)) return nullptr;
  const auto* actor = task.actor_spec();
  std::replace(name.begin(), name.end(), '\n', ' ');
  slot->log_marker =
      actor_marker_
          ? PyPtr::borrow(actor_marker_.get())
          : PyPtr(py_text(actor ? ":actor_name:" + actor->class_name() : ":task_name:" + name));
  const auto& function = spec.function();
  // The caller is of another language (see call.h).
  const bool foreign = !task.args().empty() && task.args()[0].kind == worker::ValueKind::kMsgpack;
  if (foreign) {
    PyPtr args(Py_BuildValue("(ONNN)", instance_ ? instance_.get() : Py_None,
                             py_text(function.module()), py_text(function.class_name()),
                             py_text(function.name())));
    slot->callable = call_python("ray._private.foreign", "callable_for", args.get());
  } else if (actor && !task.is_actor_creation()) {
    if (!instance_)
      return PyErr_SetString(PyExc_RuntimeError, "the actor's constructor has not finished"),
             nullptr;
    PyPtr args(Py_BuildValue("(ON)", instance_.get(), py_text(function.name())));
    slot->callable = call_python("ray._private.executor", "actor_method", args.get());
  } else {
    PyPtr args(Py_BuildValue("(y#y#)", function.key().data(),
                             static_cast<Py_ssize_t>(function.key().size()), function.blob().data(),
                             static_cast<Py_ssize_t>(function.blob().size())));
    slot->callable =
        call_python("ray._private.executor",
                    task.is_actor_creation() ? "load_constructor" : "load_function", args.get());
  }
  if (!slot->callable) return nullptr;
  if (!spec.retry_exception_types().empty()) {
    PyPtr args(Py_BuildValue("(y#)", spec.retry_exception_types().data(),
                             static_cast<Py_ssize_t>(spec.retry_exception_types().size())));
    slot->retry_types = call_python("ray._private.executor", "load_retry_types", args.get());
    if (!slot->retry_types) return nullptr;
  }
  return slot;
}

bool PythonExecutor::apply_job(const proto::JobConfig& job) {
  if (job.job_id() == context_.job_id) return true;
  auto variable = [&job](const char* name) {
    auto found = job.env().find(name);
    return py_text(found == job.env().end() ? "" : found->second);
  };
  PyPtr id(py_text(to_hex(job.job_id()))), path(py_texts(job.sys_path(), py_path)),
      code(py_texts(job.code_search_path()));
  PyPtr logging(variable("RAY_LOGGING_CONFIG")), runtime(variable("RAY_DRIVER_RUNTIME"));
  const auto lifetime_entry = job.metadata().find("default_actor_lifetime");
  PyPtr lifetime(py_text(lifetime_entry == job.metadata().end() ? "" : lifetime_entry->second));
  if (!id || !path || !code || !logging || !runtime || !lifetime) return false;
  PyPtr args(PyTuple_Pack(6, id.get(), path.get(), code.get(), logging.get(), runtime.get(),
                          lifetime.get()));
  if (!call_python("ray._private.executor", "apply_job_config", args.get())) return false;
  context_.job_id = job.job_id();
  context_.job_namespace = job.ray_namespace();
  return true;
}

bool PythonExecutor::set_environment(const worker::ExecutingTask& task, const FunctionSlot& slot) {
  if (slot.shows_gpus) {
    context_.gpu_ids = task.gpu_ids();
    PyPtr args(Py_BuildValue("(N)", py_texts(context_.gpu_ids)));
    if (!args || !call_python("ray._private.accelerators", "show_gpus", args.get())) return false;
  }
  if (slot.omp_threads == 0 || slot.omp_threads == omp_threads_) return true;
  PyPtr args(Py_BuildValue("(i)", slot.omp_threads));
  if (!call_python("ray._private.executor", "set_omp_threads", args.get())) return false;
  omp_threads_ = slot.omp_threads;
  return true;
}

}  // namespace rt::python
