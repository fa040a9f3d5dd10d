// The part of NodeCore that leaves the cluster on request.
#include <fmt/core.h>

#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

void NodeCore::drain(const proto::NodeDrain& drain, Now now) {
  const Event event(*this, now);  // Plans the next tick when this function returns.
  const bool again = drain_.has_value();
  drain_ = drain;
  if (again) return sink_.resources_changed();
  cluster_.leave();
  // Actors that have not been started yet go back to the head, which places them on another node.
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::UNSCHEDULABLE);
  info.set_message(fmt::format("node {} is leaving the cluster", me_.ip));
  actors_.fail_waiting([](const HostedActor&) { return true; }, info, true);
  bundle_desk_.close(fmt::format("node {} is leaving the cluster", me_.ip));
  leases_.leave();
  pump(now);
  sink_.resources_changed();
}

}  // namespace rt::node
