#include "python/binding/runtime.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/rpc/build.h"
#include "observability/metrics/recorder.h"
#include "python/binding/commands.h"
#include "python/binding/metrics.h"
#include "python/binding/specs.h"
#include "worker/output.h"
#include "worker/session_over.h"

namespace rt::python {

Runtime g_runtime;

namespace {

constexpr double kMostWaitS = 24 * 3600;

// Lines for the driver's terminal: filled by the worker's background thread, taken by a Python
// thread that waits on the eventfd. Beyond kBound lines new ones are counted and dropped.
struct LogQueue {
  static constexpr size_t kBound = 100'000;
  Mutex mutex;
  std::vector<worker::DriverLine> lines GUARDED_BY(mutex);
  size_t dropped GUARDED_BY(mutex) = 0;
  int fd = -1;  // set before the worker starts, and kept

  void push(const std::vector<worker::DriverLine>& more) {
    MutexLock lock(mutex);
    if (lines.size() + more.size() > kBound) {
      dropped += more.size();
    } else {
      lines.insert(lines.end(), more.begin(), more.end());
    }
    wake();
  }
  void wake() const {
    uint64_t one = 1;
    if (fd >= 0) (void)!::write(fd, &one, sizeof one);
  }
};
LogQueue g_log;

bool set_settings(PyObject* dict, Settings* settings) {
  if (!dict) return true;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    std::string name, text;
    if (!to_string(key, &name) || !to_string(value, &text)) return false;
    if (auto status = assign_setting(*settings, name, text); !status)
      return raise(status.error()) != nullptr;
  }
  return true;
}

// The processor time of the calling thread.
int64_t thread_cpu_us() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000 + used.tv_nsec / 1000;
}

// Runs gc.collect() in a thread of its own, for at most a tenth of the time; but who waits for room
// gets a collection before the store gives up. There is one thread for the life of the process,
// because a new one each time would leave malloc arenas behind.
class Collector {
 public:
  // longest_pause_us: at most so long after a collection the next may begin.
  void ask(int64_t longest_pause_us) {
    MutexLock lock(mutex_);
    if (wanted_ || steady_now_us() < not_before_us_) return;
    if (!running_) {
      auto thread = start_thread([this] { run(); });
      if (!thread) return;  // The next request tries again.
      thread->detach();
      running_ = true;
    }
    wanted_ = true;
    longest_pause_us_ = longest_pause_us;
    asked_.notify_one();
  }

 private:
  void run() {
    for (MutexLock lock(mutex_);;) {
      while (!wanted_) asked_.wait(mutex_);
      lock.unlock();
      const int64_t took_us = collect();
      lock.lock();
      not_before_us_ = steady_now_us() + std::min(9 * took_us, longest_pause_us_);
      wanted_ = false;
    }
  }

  // Returns how much processor time it took: what it waited for says nothing of its cost.
  static int64_t collect() {
    const PyGILState_STATE state = PyGILState_Ensure();
    const int64_t begun_us = thread_cpu_us();
    if (PyPtr collect = import_attribute("gc", "collect"))
      PyPtr done(PyObject_CallNoArgs(collect.get()));
    PyErr_Clear();
    const int64_t took_us = thread_cpu_us() - begun_us;
    PyGILState_Release(state);
    return took_us;
  }

  Mutex mutex_;
  CondVar asked_;
  bool wanted_ GUARDED_BY(mutex_) = false, running_ GUARDED_BY(mutex_) = false;
  int64_t not_before_us_ GUARDED_BY(mutex_) = 0, longest_pause_us_ GUARDED_BY(mutex_) = 0;
};
// Never deleted, because its thread may outlive everything else.
Collector* g_collector = new Collector;

// A forked child forgets the connection without closing it, because the threads that would close
// it exist only in the parent.
void forget_after_fork() {
  g_collector = new Collector;
  if (!g_runtime.worker) return;
  static auto* kept = new std::shared_ptr<worker::Worker>();
  *kept = std::move(g_runtime.worker);
  g_runtime.worker = nullptr;
  g_runtime.session = 0;
  g_runtime.forked = true;
}

// Whether a handler of a signal has raised: its exception stays set in this thread (see raise()).
bool signal_handler_raised() {
  PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  return raised;
}

// start({node_manager_socket, worker_id, is_driver, job_config: {...}, settings: {...}, log: bool,
// runtime: "Python 3.11.2"})
PyObject* start(PyObject*, PyObject* dict) {
  if (!PyDict_Check(dict)) return PyErr_Format(PyExc_TypeError, "expected a dict");
  if (g_runtime.worker)
    return PyErr_Format(PyExc_RuntimeError, "this process is connected already");
  worker::Options options;
  options.metrics = &metrics_recorder();
  options.commands = &process_commands();
  options.interrupted = signal_handler_raised;
  std::string worker_id, runtime;
  bool log = false;
  auto settings = load_settings("", {});
  if (!settings) return raise(settings.error());
  options.settings = std::move(*settings);
  PyObject* job = PyDict_GetItemString(dict, "job_config");
  if (!read(dict, "node_manager_socket", &options.node_manager_socket) ||
      !read(dict, "worker_id", &worker_id) || !read(dict, "is_driver", &options.is_driver) ||
      !read(dict, "runtime_env", &options.runtime_env) || !read(dict, "log", &log) ||
      !read(dict, "runtime", &runtime) ||
      (job && !job_config_from_dict(job, &options.job_config)) ||
      !set_settings(PyDict_GetItemString(dict, "settings"), &options.settings)) {
    return nullptr;
  }
  options.collect_garbage = [collector = g_collector,
                             pause_us = options.settings.create_wait_ms * 1000 / 2] {
    collector->ask(pause_us);
  };
  if (!runtime.empty()) rpc::set_runtime(runtime);
  if (!worker_id.empty()) options.worker_id = WorkerId::from_binary(worker_id);
  if (log) {
    if (g_log.fd < 0) g_log.fd = eventfd(0, EFD_CLOEXEC);
    options.log_sink = [](const std::vector<worker::DriverLine>& lines) { g_log.push(lines); };
  }
  Result<std::unique_ptr<worker::Worker>> worker = Error{};
  {
    GilRelease release;
    worker = worker::Worker::start(std::move(options));
  }
  if (!worker) return raise(worker.error());
  g_runtime.worker = std::move(*worker);
  g_runtime.profiles = g_runtime.worker->profiles();
  g_runtime.session = ++g_runtime.last_session;
  return PyLong_FromUnsignedLongLong(g_runtime.session);
}

PyObject* stop(PyObject*, PyObject*) {
  WorkerHold worker = std::move(g_runtime.worker);
  g_runtime.worker = nullptr;
  g_runtime.session = 0;
  {
    GilRelease release;
    // Other threads may hold it, in calls that end now.
    if (worker) worker->stop();
  }
  // Dropped with the GIL held: nobody is in a short call of the worker, which holds only the GIL
  // and not the worker.
  worker.reset();
  // Their values are in the sums of the cluster that was left.
  metrics_recorder().clear();
  g_log.wake();
  Py_RETURN_NONE;
}

PyObject* is_forked(PyObject*, PyObject*) { return PyBool_FromLong(g_runtime.forked); }

PyObject* session(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(g_runtime.session); }

PyObject* context(PyObject*, PyObject*) {
  if (!g_runtime.worker) Py_RETURN_NONE;
  const worker::Context c = g_runtime.worker->context();
  PyPtr dict(PyDict_New());
  if (!dict) return nullptr;
  PyObject* d = dict.get();
  set_item(d, "job_id", py_bytes(c.job_id.view()));
  set_item(d, "node_id", py_bytes(c.node_id.view()));
  set_item(d, "worker_id", py_bytes(c.worker_id.view()));
  set_item(d, "namespace", py_text(c.ray_namespace));
  set_item(d, "session_dir", py_text(c.session_dir));
  set_item(d, "session_name", py_text(c.session_name));
  set_item(d, "node_ip", py_text(c.node_ip));
  set_item(d, "node_name", py_text(c.node_name));
  set_item(d, "head_address", py_text(c.head_address));
  set_item(d, "dashboard_address", py_text(c.dashboard_address));
  set_item(d, "object_store_socket", py_text(c.object_store_socket));
  set_item(d, "node_manager_socket", py_text(c.node_manager_socket));
  set_item(d, "node_manager_port", PyLong_FromLong(c.node_manager_port));
  set_item(d, "is_driver", PyBool_FromLong(c.is_driver));
  return PyErr_Occurred() ? nullptr : dict.release();
}

PyObject* await_output(PyObject*, PyObject*) {
  if (WorkerHold worker = g_runtime.worker) {
    GilRelease release;
    worker::await_output(*worker);
  }
  Py_RETURN_NONE;
}

PyObject* is_connected(PyObject*, PyObject*) {
  return PyBool_FromLong(g_runtime.worker && g_runtime.worker->is_connected());
}

// take_log_lines(seconds to wait, -1: until there are lines) -> [(name, ip, text, pid, is_stderr,
// kind), ...]. The kind is 0 for output, 1 for a notice and 2 for an error of this process.
PyObject* take_log_lines(PyObject*, PyObject* wait) {
  const double seconds = PyFloat_AsDouble(wait);
  if (PyErr_Occurred()) return nullptr;
  if (seconds != 0 && g_log.fd >= 0) {
    GilRelease release;
    pollfd readable{g_log.fd, POLLIN, 0};
    uint64_t count;
    int timeout_ms =
        seconds < 0 ? -1 : static_cast<int>(std::ceil(std::min(seconds, kMostWaitS) * 1000));
    if (::poll(&readable, 1, timeout_ms) > 0) (void)!::read(g_log.fd, &count, sizeof count);
  }
  std::vector<worker::DriverLine> lines;
  size_t dropped;
  {
    MutexLock lock(g_log.mutex);
    lines.swap(g_log.lines);
    dropped = std::exchange(g_log.dropped, 0);
  }
  if (dropped)
    lines.push_back({"", "",
                     std::to_string(dropped) +
                         " log lines were dropped: they came faster than they could be printed",
                     0, true, true});
  PyPtr list(PyList_New(lines.size()));
  for (size_t i = 0; list && i < lines.size(); ++i) {
    const auto& line = lines[i];
    PyPtr name(py_text(line.name)), ip(py_text(line.ip)), text(py_text(line.text));
    if (!name || !ip || !text) return nullptr;
    PyObject* item =
        Py_BuildValue("(OOOiOi)", name.get(), ip.get(), text.get(), line.pid,
                      line.is_stderr ? Py_True : Py_False, line.is_error ? 2 : line.is_notice);
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), i, item);
  }
  return list.release();
}

PyObject* wake_log_reader(PyObject*, PyObject*) {
  g_log.wake();
  Py_RETURN_NONE;
}

PyMethodDef kRuntimeFunctions[] = {
    {"start", start, METH_O, "Connects this process; returns the session number."},
    {"stop", stop, METH_NOARGS, "Disconnects this process."},
    {"is_forked", is_forked, METH_NOARGS, "Whether this process was forked from a connected one."},
    {"session", session, METH_NOARGS, "The current session's number, 0 when not connected."},
    {"context", context, METH_NOARGS, "What start() learnt, as a dict; None when not connected."},
    {"await_output", await_output, METH_NOARGS,
     "Waits until all that workers of this job have printed is here, but for seconds at most."},
    {"is_connected", is_connected, METH_NOARGS, "Whether the node-manager is still there."},
    {"take_log_lines", take_log_lines, METH_O, nullptr},
    {"wake_log_reader", wake_log_reader, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

worker::Worker* connected() {
  if (g_runtime.worker) return g_runtime.worker.get();
  PyPtr args(PyTuple_New(0));
  PyPtr done = call_python("ray._private.worker", "auto_init", args.get());
  if (!done) return nullptr;
  if (!g_runtime.worker)
    PyErr_SetString(PyExc_RuntimeError, "ray is not initialised: call ray.init() first");
  return g_runtime.worker.get();
}

bool still_in(uint64_t session) {
  if (session != 0 && session == g_runtime.session) return true;
  raise(worker::session_over());
  return false;
}

PyObject* raise(const Error& error) {
  if (PyErr_Occurred()) return nullptr;  // A signal's handler ended the call.
  PyPtr args(Py_BuildValue("(iN)", static_cast<int>(error.code), py_text(error.message)));
  if (!args) return nullptr;
  PyPtr exception = call_python("ray._private.errors", "system_exception", args.get());
  if (exception)
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return nullptr;
}

bool add_runtime(PyObject* module) {
  return pthread_atfork(nullptr, nullptr, forget_after_fork) == 0 &&
         PyModule_AddFunctions(module, kRuntimeFunctions) == 0;
}

}  // namespace rt::python
