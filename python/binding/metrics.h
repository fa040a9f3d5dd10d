// ray.util.metrics: what user code counts in this process.
#pragma once

#include "python/binding/py.h"

namespace rt::metrics {
class Recorder;
}

namespace rt::python {

// One per process, as long as it: metrics may be made and counted before ray.init().
metrics::Recorder& metrics_recorder();
bool add_metrics(PyObject* module);

}  // namespace rt::python
