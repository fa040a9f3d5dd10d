// ray.util.state: queries to a cluster, also from a process that is not connected to it.
#pragma once

#include "python/binding/py.h"

namespace rt::python {

bool add_state(PyObject* module);

}  // namespace rt::python
