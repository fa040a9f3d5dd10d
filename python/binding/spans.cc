#include "python/binding/spans.h"

#include <string>

#include "python/binding/executor.h"
#include "python/binding/objects.h"

namespace rt::python {
namespace {

// Does nothing when the session has ended in the meantime.
void record_span(const std::string& type, int64_t start_us, const std::string& extra) {
  if (!g_runtime.worker) return;
  if (in_event_loop()) submit_for_coroutine();
  g_runtime.worker->record_span(type, start_us, wall_now_us(), extra);
}

PyObject* is_profiling(PyObject*, PyObject*) { return PyBool_FromLong(g_runtime.profiles); }

// record_span(type, start in microseconds of the wall clock, extra data as JSON or "")
PyObject* record_until_now(PyObject*, PyObject* args) {
  PyObject *type, *extra;
  long long start_us;
  std::string type_text, extra_text;
  if (!PyArg_ParseTuple(args, "OLO", &type, &start_us, &extra) || !to_string(type, &type_text) ||
      !to_string(extra, &extra_text))
    return nullptr;
  record_span(type_text, start_us, extra_text);
  Py_RETURN_NONE;
}

PyMethodDef kSpansFunctions[] = {
    {"is_profiling", is_profiling, METH_NOARGS,
     "Whether this process records spans: it has RAY_PROFILING in its environment."},
    {"record_span", record_until_now, METH_VARARGS,
     "record_span(type, start in microseconds, extra data as JSON): it ends now."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void record_call(const char* type, int64_t start_us) {
  std::string extra;
  PyObject *error, *value, *traceback;
  PyErr_Fetch(&error, &value, &traceback);
  if (error) {
    PyErr_NormalizeException(&error, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    PyPtr args(PyTuple_Pack(1, value));
    PyPtr told(call_python("ray._private.profiling", "failure", args.get()));
    if (!told || !to_string(told.get(), &extra)) PyErr_Clear();
  }
  record_span(type, start_us, extra);
  PyErr_Restore(error, value, traceback);
}

bool add_spans(PyObject* module) { return PyModule_AddFunctions(module, kSpansFunctions) == 0; }

}  // namespace rt::python
