// Placement groups on the worker (worker/placement_groups.h).
#pragma once

#include "python/binding/py.h"

namespace rt::python {

bool add_groups(PyObject* module);

}  // namespace rt::python
