// The callback of a part that waits for a connection, or for the error that there will be none.
#pragma once

#include <functional>
#include <memory>

#include "common/rpc/connection.h"

namespace rt::worker {

using WithConnection = std::function<void(Result<std::shared_ptr<rpc::Connection>>)>;

}  // namespace rt::worker
