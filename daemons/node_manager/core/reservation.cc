#include "daemons/node_manager/core/reservation.h"

#include <algorithm>
#include <bit>

namespace rt::node {

void Prospect::add(const ResourceSet& held, const GpuShare& gpus) {
  resources_.add(held);
  gpus_.give_back(gpus);
}

bool Prospect::covers(const ResourceSet& request) const {
  return resources_.contains(request) && (gpus_.empty() || gpus_.fits(request.units("GPU")));
}

bool Prospect::covers_all(const ResourceSet& sum, std::span<const ResourceSet> requests) const {
  if (!resources_.contains(sum)) return false;
  if (gpus_.empty()) return true;
  GpuPool left = gpus_;
  for (const ResourceSet& request : requests) {
    const int64_t units = request.units("GPU");
    if (!left.fits(units)) return false;
    left.take(units);
  }
  return true;
}

bool may_set_aside(int64_t waited_us, int64_t starved_after_us) {
  const int64_t unit = std::max<int64_t>(starved_after_us, 1);
  if (waited_us <= unit) return false;
  // A period of setting aside begins after 1, 2, 4, 8, ... units, and takes half of the time until
  // the next one.
  const int64_t begin =
      unit * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(waited_us / unit)));
  return (waited_us - begin) * 2 < begin;
}

}  // namespace rt::node
