// Starting and finding clusters, and asking the head.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

bool add_cluster(PyObject* module);

}  // namespace rt::python
