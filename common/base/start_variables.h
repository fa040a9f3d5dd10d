// Environment variables that are read only when a program starts: one that is set in a process
// which was forked from another comes too late.
#pragma once

#include <algorithm>
#include <string_view>

namespace rt {

// Read by the loader, the C library or the interpreter.
inline bool is_read_at_start(std::string_view name) {
  return name.starts_with("LD_") || name.starts_with("MALLOC_") ||
         name.starts_with("GLIBC_TUNABLES") ||
         (name.starts_with("PYTHON") && name != "PYTHONPATH" && name != "PYTHONBREAKPOINT");
}

// Read by math libraries when they are loaded, which NumPy does when it is imported.
inline bool is_read_by_math_libraries(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"OMP_",      "GOMP_",    "KMP_", "MKL_",
                                            "OPENBLAS_", "NUMEXPR_", "BLIS_"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace rt
