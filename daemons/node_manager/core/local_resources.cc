#include "daemons/node_manager/core/local_resources.h"

#include <algorithm>

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

double utilisation_after(const ResourceSet& total, const ResourceSet& available,
                         const ResourceSet& request) {
  double worst = 0;
  for (const auto& [name, wanted] : request.all()) {
    int64_t all = total.units(name);
    if (all <= 0) return 2;
    worst = std::max(worst, static_cast<double>(all - available.units(name) + wanted) /
                                static_cast<double>(all));
  }
  return worst;
}

}  // namespace rt::node
