#include "python/binding/metrics.h"

#include "observability/metrics/recorder.h"
#include "python/binding/runtime.h"

namespace rt::python {
namespace {

bool read_strings(PyObject* tuple, std::vector<std::string>* out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (!to_string(PyTuple_GET_ITEM(tuple, i), &out->emplace_back())) return false;
  }
  return true;
}

// metric_define(kind, name, description, tag keys, boundaries) -> the metric's number. The kinds
// are 0 counter, 1 gauge, 2 histogram.
PyObject* metric_define(PyObject*, PyObject* args) {
  int kind;
  PyObject *name, *description, *tag_keys, *boundaries;
  metrics::Definition definition;
  if (!PyArg_ParseTuple(args, "iUUO!O!", &kind, &name, &description, &PyTuple_Type, &tag_keys,
                        &PyTuple_Type, &boundaries) ||
      !to_string(name, &definition.name) || !to_string(description, &definition.description) ||
      !read_strings(tag_keys, &definition.tag_keys)) {
    return nullptr;
  }
  definition.kind = static_cast<proto::Metric::Kind>(kind);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(boundaries); ++i) {
    definition.boundaries.push_back(PyFloat_AsDouble(PyTuple_GET_ITEM(boundaries, i)));
    if (PyErr_Occurred()) return nullptr;
  }
  return PyLong_FromUnsignedLong(metrics_recorder().define(definition));
}

// metric_record(number, tag values in the order of the tag keys, value)
PyObject* metric_record(PyObject*, PyObject* args) {
  unsigned int metric;
  PyObject* tags;
  double value;
  std::vector<std::string> values;
  if (!PyArg_ParseTuple(args, "IO!d", &metric, &PyTuple_Type, &tags, &value) ||
      !read_strings(tags, &values))
    return nullptr;
  auto recorded = metrics_recorder().record(metric, values, value);
  if (recorded == metrics::Recorder::Recorded::kReportDue) {
    WorkerHold worker = hold_worker();
    if (worker) {
      GilRelease release;
      worker->metrics_changed();
    }
  } else if (recorded == metrics::Recorder::Recorded::kOverflow) {
    if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "more than %zu series of metrics in this process (a name with one set of "
                         "tag values is one): new ones are not recorded. "
                         "Use tags with few values",
                         metrics::Recorder::kMaxSeries) < 0) {
      return nullptr;
    }
  }
  Py_RETURN_NONE;
}

PyMethodDef kMetricsFunctions[] = {{"metric_define", metric_define, METH_VARARGS, nullptr},
                                   {"metric_record", metric_record, METH_VARARGS, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};

}  // namespace

metrics::Recorder& metrics_recorder() {
  // Never destroyed, because the I/O thread may report while the interpreter ends.
  static auto* recorder = new metrics::Recorder;
  return *recorder;
}

bool add_metrics(PyObject* module) { return PyModule_AddFunctions(module, kMetricsFunctions) == 0; }

}  // namespace rt::python
