#include "daemons/node_manager/core/room.h"

namespace rt::node {

bool Room::has_devices(const ResourceSet& request) const {
  return gpus_.empty() || gpus_.fits(request.units("GPU"));
}

GpuShare Room::take(const ResourceSet& request) {
  resources_.acquire(request);
  return gpus_.empty() ? GpuShare() : gpus_.take(request.units("GPU"));
}

void Room::give_back(const ResourceSet& held, const GpuShare& gpus) {
  resources_.release(held);
  gpus_.give_back(gpus);
}

void Room::exchange(const ResourceSet& before, const ResourceSet& after) {
  resources_.release(before);
  resources_.acquire_with_debt(after);
}

}  // namespace rt::node
