// A Pump and Objects alone: their peers cannot be reached, and what they ask of others is for the
// test to answer.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "tests/unit/worker/manual_loop.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"

namespace rt::test {

struct ServiceParts {
  explicit ServiceParts(worker::Options options, worker::Pump::Hooks pump_hooks,
                        worker::Objects::Hooks object_hooks)
      : shared(std::move(options)),
        pump({shared, objects, notices}, std::move(pump_hooks)),
        objects({shared, pump, peers, notices}, std::move(object_hooks)) {
    worker::WorkerLock lock(shared.mutex);
    shared.context.worker_id = WorkerId::random(rng);
    shared.context.node_id = NodeId::random(rng);
    objects.reset(shared.context.worker_id);
  }

  Rng rng{1};
  ManualLoop network;  // Where the peers are.
  worker::Shared shared;
  worker::Notices notices{shared.options, shared.context, [this] { pump.wake_background(); }};
  worker::Pump pump;
  worker::PeerLinks peers{network,
                          shared.options,
                          shared.context,
                          shared.self,
                          {.opened = [](const auto&) {}, .closed = [](const auto&, bool) {}}};
  worker::Objects objects;
};

}  // namespace rt::test
