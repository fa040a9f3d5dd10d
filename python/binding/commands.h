// The commands that Python code offers in this process (observability/command_service).
#pragma once

#include "python/binding/py.h"

namespace rt::command {
class Commands;
}

namespace rt::python {

// One per process, and it lives as long as the process: commands may be set before ray.init(), and
// stay after ray.shutdown().
command::Commands& process_commands();
// Adds set_command().
bool add_commands(PyObject* module);

}  // namespace rt::python
