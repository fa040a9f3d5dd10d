#include "daemons/node_manager/core/local_resources.h"

namespace rt::node {

void LocalResources::acquire(const ResourceSet& request) {
  if (request.empty()) return;
  available_.subtract(request);
  ++version_;
}

void LocalResources::acquire_with_debt(const ResourceSet& request) {
  if (request.empty()) return;
  available_.subtract_allowing_debt(request);
  ++version_;
}

void LocalResources::release(const ResourceSet& request) {
  if (request.empty()) return;
  available_.add(request);
  ++version_;
  RT_CHECK(total_.contains(available_));
}

ResourceSet cpu_part(const ResourceSet& request) {
  ResourceSet cpu;
  cpu.set_units("CPU", request.units("CPU"));
  return cpu;
}

}  // namespace rt::node
