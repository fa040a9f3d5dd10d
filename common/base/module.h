// Parts of this software that few processes need and that bring a large library along: shared
// objects loaded by name, at the first use.
#pragma once

#include "common/base/status.h"

namespace rt {

// The symbol `entry` of the module `file` ("libray_tls.so"), found from where this code is: build
// tree, installed, wheel. It stays loaded.
Result<void*> load_module(const char* file, const char* entry);

}  // namespace rt
