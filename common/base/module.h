// Loads modules: parts of this software that few processes need and that bring a large library
// along. They are shared objects that are loaded by name at their first use.
#pragma once

#include "common/base/status.h"

namespace rt {

// Returns the symbol `entry` of the module `file` (for example "libray_tls.so"), which is searched
// from where this code is: build tree, installation or wheel. The module stays loaded. kUnsupported
// says why it could not be loaded.
Result<void*> load_module(const char* file, const char* entry);

}  // namespace rt
