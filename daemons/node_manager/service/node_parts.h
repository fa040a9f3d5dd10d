// The parts of a node-manager that its reports and figures read.
#pragma once

#include "daemons/node_manager/core/node_core.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

// They are used while the loop runs; in which order they end does not matter.
struct NodeParts {
  const NodeCore& core;
  const Sessions& sessions;
  StoreLink* store;  // null: a node without a store
};

}  // namespace rt::node
