// The node's core with its clock.
#pragma once

#include "common/net/core_driver.h"
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

using CoreDriver = net::CoreDriver<NodeCore>;

}  // namespace rt::node
