// How large a description of a task or an actor may be. Requests for workers carry it, also to
// processes that have not yet asked for it, and one that does not fit into a message would hold up
// all that follow it; so it is refused where it is made.
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/status.h"

namespace rt::worker {

// Bytes of a serialized spec, without the values of arguments.
inline constexpr size_t kMaxSpecBytes = size_t{1} << 20;

// Fails with kInvalid above kMaxSpecBytes. `kind` is how messages call what the spec describes, as
// in "a task".
Status check_spec_size(size_t bytes, std::string_view kind);

}  // namespace rt::worker
