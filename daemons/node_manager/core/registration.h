// The state of the node as its registration tells it to a head, which may be another one than
// before and know nothing of it.
#pragma once

#include "common/proto/head.pb.h"
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

// Fills in who the node is, what it has, and what of that is free according to `report`
// (NodeView::fill_report()). Addresses of other processes and the like are left to the caller.
void fill_node(const NodeCore& core, const proto::ResourceReport& report, proto::Node* node);

// Adds the actors that live here or are being started, those that have ended here, and the bundles.
// The head may have missed each of these: its disk was full, or it was away. An actor that ends
// before it lives is not told of: whoever asked for it asks again.
void fill_holdings(const NodeCore& core, proto::RegisterNodeRequest* request);

}  // namespace rt::node
