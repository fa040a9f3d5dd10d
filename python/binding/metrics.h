// ray.util.metrics: the metrics that user code records in this process.
#pragma once

#include "python/binding/py.h"

namespace rt::metrics {
class Recorder;
}

namespace rt::python {

// One per process, and it lives as long as the process: metrics may be made and recorded before
// ray.init().
metrics::Recorder& metrics_recorder();
bool add_metrics(PyObject* module);

}  // namespace rt::python
