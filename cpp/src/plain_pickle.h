// Converts Python's pickles of plain data to msgpack, so that C++ can read objects stored by
// Python.
#pragma once

#include <string>
#include <string_view>

namespace ray::internal {

// Reads None, bool, int (64 bits), float, str, bytes, list, tuple and dict as protocols 2 to 5
// write them. Throws RayException for everything else: instances of classes, sets, larger
// integers, containers that contain themselves.
std::string msgpack_of_pickle(std::string_view pickle);

}  // namespace ray::internal
