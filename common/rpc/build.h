// What a process runs, as its hellos say it: the release and, in drivers and workers, the
// language's runtime.
#pragma once

#include <string>
#include <string_view>

namespace rt::rpc {

// "0.1.0" or "0.1.0 Python 3.11.2".
const std::string& my_build();
// "Python 3.11.2". Once, before the first connection.
void set_runtime(std::string_view runtime);

// What to tell a person about two processes that work together; empty when there is nothing to
// tell: the same builds, or nothing to compare.
std::string build_difference(std::string_view mine, std::string_view theirs);

}  // namespace rt::rpc
