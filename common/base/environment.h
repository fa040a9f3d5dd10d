#pragma once

#include <cstdlib>
#include <string>

namespace rt {

// Empty when unset.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace rt
