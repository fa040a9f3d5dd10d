// The build string that a process sends in its hellos: the release and, in drivers and workers, the
// version of the language runtime.
#pragma once

#include <string>
#include <string_view>

namespace rt::rpc {

// Returns the build string of this process: "0.1.0" or "0.1.0 Python 3.11.2".
const std::string& my_build();
// Adds the language runtime, for example "Python 3.11.2", to the build string. Call it once, before
// the first connection: the string is not guarded by a lock.
void set_runtime(std::string_view runtime);

// Says for a user how the builds of two processes that work together differ, and what that may
// break. Empty when the builds are equal or cannot be compared.
std::string build_difference(std::string_view mine, std::string_view theirs);

}  // namespace rt::rpc
