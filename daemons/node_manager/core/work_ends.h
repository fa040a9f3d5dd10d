// Ends the work of processes that end: their leases and actors, and the bundles that only they kept
// here. It connects Workers with those who gave them work.
#pragma once

#include <string>

#include "daemons/node_manager/core/bundle_desk.h"
#include "daemons/node_manager/core/hosted_actors.h"
#include "daemons/node_manager/core/leases.h"
#include "daemons/node_manager/core/node_identity.h"
#include "daemons/node_manager/core/workers.h"

namespace rt::node {

class WorkEnds final : public Workers::Listener {
 public:
  // All of them outlive this object, and are used only once they are there.
  struct Parts {
    const NodeIdentity& me;
    Workers& workers;
    HostedActors& actors;
    Leases& leases;
    BundleDesk& bundle_desk;
  };
  explicit WorkEnds(const Parts& node) : node_(node) {}

  // Workers::Listener
  void work_ended(Worker& worker, Now now) override;
  ActorId actor_in(const Worker& worker) const override { return node_.actors.in_process(worker); }
  void process_ended(const RoomKey& room, const proto::ExitInfo& info) override;
  void cannot_start(const WorkerKind& kind, const std::string& why, Code code, Now now) override;

 private:
  const Parts node_;
};

}  // namespace rt::node
