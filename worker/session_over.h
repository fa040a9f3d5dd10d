// The error of every call that needs a session which this process has ended.
#pragma once

#include "common/base/status.h"

namespace rt::worker {

inline Error session_over() {
  return make_error(Code::kUnavailable,
                    "Ray has been shut down: ray.init() starts or joins a cluster again, without "
                    "the objects and actors of the session that has ended");
}

}  // namespace rt::worker
