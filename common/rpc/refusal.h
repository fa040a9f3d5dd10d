// Private to common/rpc: refuses a socket that has no Connection.
#pragma once

#include "common/base/status.h"

namespace rt::rpc {

// Sends `why` to the peer as an error frame, as far as that works without waiting, and closes `fd`.
void refuse_socket(int fd, const Error& why);

}  // namespace rt::rpc
