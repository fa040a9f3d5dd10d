#include "daemons/node_manager/core/gpu_pool.h"

#include <algorithm>

#include "common/base/status.h"

namespace rt::node {
namespace {
constexpr int64_t kWhole = ResourceSet::kUnit;
}

GpuPool::GpuPool(int count, std::vector<std::string> names)
    : names_(std::move(names)), free_(static_cast<size_t>(count), kWhole) {
  while (names_.size() < free_.size()) names_.push_back(std::to_string(names_.size()));
}

int GpuPool::pick(int64_t units) const {
  int best = -1;
  for (size_t i = 0; i < free_.size(); ++i) {
    if (free_[i] >= units && (best < 0 || free_[i] < free_[static_cast<size_t>(best)]))
      best = static_cast<int>(i);
  }
  return best;
}

bool GpuPool::fits(int64_t units) const {
  if (units <= 0) return true;
  if (units < kWhole) return pick(units) >= 0;
  return std::count(free_.begin(), free_.end(), kWhole) * kWhole >= units;
}

GpuShare GpuPool::take(int64_t units) {
  GpuShare share;
  if (units <= 0) return share;
  RT_CHECK(fits(units));
  if (units < kWhole) {
    share.emplace_back(pick(units), units);
  } else {
    // Clients only send whole numbers above 1; for any other the last device is taken in part.
    for (size_t i = 0; i < free_.size() && units > 0; ++i) {
      if (free_[i] != kWhole) continue;
      share.emplace_back(static_cast<int>(i), std::min(units, kWhole));
      units -= kWhole;
    }
  }
  for (const auto& [device, part] : share) free_[static_cast<size_t>(device)] -= part;
  return share;
}

void GpuPool::give_back(const GpuShare& share) {
  for (const auto& [device, part] : share) {
    int64_t& free = free_[static_cast<size_t>(device)];
    free += part;
    RT_CHECK(free <= kWhole);
  }
}

std::vector<std::string> GpuPool::names(const GpuShare& share) const {
  std::vector<std::string> names;
  for (const auto& [device, part] : share) names.push_back(names_[static_cast<size_t>(device)]);
  return names;
}

int64_t GpuPool::taken() const {
  int64_t sum = 0;
  for (int64_t free : free_) sum += kWhole - free;
  return sum;
}

}  // namespace rt::node
