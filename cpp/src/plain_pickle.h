// Python's pickles of plain data as msgpack: what a reference from Python holds, for C++ to read.
#pragma once

#include <string>
#include <string_view>

namespace ray::internal {

// None, bool, int (64 bits), float, str, bytes, list, tuple and dict, as protocol 2 to 5 write
// them. Throws RayException for what has no counterpart: instances of classes, sets, larger
// integers, containers that hold themselves.
std::string msgpack_of_pickle(std::string_view pickle);

}  // namespace ray::internal
