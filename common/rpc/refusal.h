// Private to common/rpc.
#pragma once

#include "common/base/status.h"

namespace rt::rpc {

// Tells the peer of a raw socket why, as far as that works without waiting, and closes it.
void refuse_socket(int fd, const Error& why);

}  // namespace rt::rpc
