#include "daemons/node_manager/core/gpu_pool.h"

#include <algorithm>

#include "common/base/status.h"

namespace rt::node {
namespace {
constexpr int64_t kWhole = ResourceSet::kUnit;
}

GpuPool::GpuPool(int count, std::vector<std::string> names)
    : names_(std::move(names)), total_(static_cast<size_t>(count), kWhole), free_(total_) {
  while (names_.size() < free_.size()) names_.push_back(std::to_string(names_.size()));
}

GpuPool GpuPool::part(const GpuShare& share) const {
  GpuPool part(0, names_);
  if (share.empty()) return part;
  part.total_.resize(total_.size());
  for (const auto& [device, units] : share) part.total_[static_cast<size_t>(device)] += units;
  part.free_ = part.total_;
  return part;
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
  const int64_t whole = std::count(free_.begin(), free_.end(), kWhole), rest = units % kWhole;
  if (whole < units / kWhole) return false;
  // The part of a device may be of one that is shared already.
  return rest == 0 || whole > units / kWhole ||
         std::any_of(free_.begin(), free_.end(),
                     [&](int64_t free) { return free >= rest && free < kWhole; });
}

GpuShare GpuPool::take(int64_t units) {
  GpuShare share;
  if (units <= 0) return share;
  RT_CHECK(fits(units));
  auto take_of = [&](int device, int64_t part) {
    share.emplace_back(device, part);
    free_[static_cast<size_t>(device)] -= part;
    units -= part;
  };
  for (size_t i = 0; i < free_.size() && units >= kWhole; ++i) {
    if (free_[i] == kWhole) take_of(static_cast<int>(i), kWhole);
  }
  if (units > 0) take_of(pick(units), units);
  return share;
}

void GpuPool::give_back(const GpuShare& share) {
  for (const auto& [device, part] : share) {
    int64_t& free = free_[static_cast<size_t>(device)];
    free += part;
    RT_CHECK(free <= total_[static_cast<size_t>(device)]);
  }
}

std::vector<std::string> GpuPool::names(const GpuShare& share) const {
  std::vector<std::string> names;
  for (const auto& [device, part] : share) names.push_back(names_[static_cast<size_t>(device)]);
  return names;
}

int64_t GpuPool::taken() const {
  int64_t sum = 0;
  for (size_t i = 0; i < free_.size(); ++i) sum += total_[i] - free_[i];
  return sum;
}

}  // namespace rt::node
