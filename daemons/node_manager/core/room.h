// An amount of resources and the GPU devices that belong to it, which tasks and actors share. A
// node has one room of its own, and one for each bundle of a placement group that it holds: that
// one is taken out of the node's like the resources of a task, and then shared out in turn.
#pragma once

#include "daemons/node_manager/core/gpu_pool.h"
#include "daemons/node_manager/core/local_resources.h"

namespace rt::node {

class Room {
 public:
  Room(ResourceSet total, GpuPool gpus) : resources_(std::move(total)), gpus_(std::move(gpus)) {}

  const LocalResources& resources() const { return resources_; }
  const GpuPool& gpus() const { return gpus_; }
  // True if the request fits while nothing else is in the room.
  bool feasible(const ResourceSet& request) const { return resources_.feasible(request); }
  // True if the devices that the request needs are free, each of them in one piece.
  bool has_devices(const ResourceSet& request) const;
  // True if the request fits now, devices included.
  bool fits(const ResourceSet& request) const {
    return resources_.fits(request) && has_devices(request);
  }

  // fits(request) is required.
  GpuShare take(const ResourceSet& request);
  void give_back(const ResourceSet& held, const GpuShare& gpus);
  // A blocked process lends its CPUs to others in its room. It takes them back at once when it goes
  // on, whether or not they are free.
  void lend(const ResourceSet& cpu) { resources_.release(cpu); }
  void take_back(const ResourceSet& cpu) { resources_.acquire_with_debt(cpu); }
  // An actor has been constructed: it holds `after` in place of `before`, and keeps its devices.
  void exchange(const ResourceSet& before, const ResourceSet& after);

 private:
  LocalResources resources_;
  GpuPool gpus_;
};

}  // namespace rt::node
