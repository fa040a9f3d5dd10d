#include "common/scheduling/gpu_devices.h"

#include <algorithm>
#include <functional>

#include "common/base/status.h"
#include "common/resources/resource_set.h"

namespace rt::scheduling {
namespace {

constexpr int64_t kWhole = ResourceSet::kUnit;

// Returns whether `demands` has, for each of `less`, a demand at least as large. Both are in
// descending order.
bool covers(const GpuDemands& demands, const GpuDemands& less) {
  return demands.size() >= less.size() &&
         std::equal(less.begin(), less.end(), demands.begin(), std::less_equal<>());
}

}  // namespace

GpuDevices::GpuDevices(int64_t free_units) : whole_(std::max<int64_t>(free_units, 0) / kWhole) {
  if (free_units > 0 && free_units % kWhole > 0) parts_.push_back(free_units % kWhole);
}

bool GpuDevices::fits(int64_t units) const {
  const int64_t whole = units / kWhole, rest = units % kWhole;
  if (whole_ < whole) return false;
  return rest == 0 || whole_ > whole || (!parts_.empty() && parts_.back() >= rest);
}

void GpuDevices::take(int64_t units) {
  RT_CHECK(fits(units));
  whole_ -= units / kWhole;
  const int64_t rest = units % kWhole;
  if (rest == 0) return;
  int64_t left = kWhole - rest;
  if (auto part = std::lower_bound(parts_.begin(), parts_.end(), rest); part != parts_.end()) {
    left = *part - rest;
    parts_.erase(part);
  } else {
    --whole_;
  }
  if (left > 0) parts_.insert(std::lower_bound(parts_.begin(), parts_.end(), left), left);
}

bool GpuDevices::take_all(std::span<const int64_t> demands) {
  return std::all_of(demands.begin(), demands.end(), [&](int64_t units) {
    if (!fits(units)) return false;
    take(units);
    return true;
  });
}

bool GpuRoom::fits(std::span<const int64_t> demands) const {
  const bool after_others = put_.empty() || demands.empty() || demands.front() <= put_.back();
  if (!refused_ && after_others && demands.size() <= 1)
    return demands.empty() || left_.fits(demands.front());
  GpuDemands together;
  together.reserve(put_.size() + demands.size());
  std::merge(put_.begin(), put_.end(), demands.begin(), demands.end(), std::back_inserter(together),
             std::greater<>());
  if (refused_ && std::any_of(refused_->begin(), refused_->end(),
                              [&](const GpuDemands& refused) { return covers(together, refused); }))
    return false;
  GpuDevices left = all_;
  return left.take_all(together);
}

void GpuRoom::put(int64_t units) {
  const bool last = put_.empty() || units <= put_.back();
  put_.insert(std::upper_bound(put_.begin(), put_.end(), units, std::greater<>()), units);
  last ? left_.take(units) : lay_out();
}

void GpuRoom::take_back(int64_t units) {
  put_.erase(std::lower_bound(put_.begin(), put_.end(), units, std::greater<>()));
  lay_out();
}

void GpuRoom::lay_out() {
  left_ = all_;
  left_.take_all(put_);
}

}  // namespace rt::scheduling
