// Assigns this node's GPU devices. LocalResources accounts for the amount of "GPU"; this class
// decides which devices a holder gets: a request of 1 or more gets whole devices, a fraction gets
// part of a shared one. A request for a whole device may therefore not fit although fractions free
// on several devices add up to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/resources/resource_set.h"

namespace rt::node {

using GpuShare = std::vector<std::pair<int, int64_t>>;  // (device, units of that device)

class GpuPool {
 public:
  // `names` gives the devices' names in order; a device beyond the list is named by its number.
  GpuPool(int count, std::vector<std::string> names);

  // The pool of those devices, or parts of devices, that `share` has: a holder of them can share
  // them out further. They keep their numbers and names.
  GpuPool part(const GpuShare& share) const;

  bool empty() const { return free_.empty(); }
  bool fits(int64_t units) const;
  GpuShare take(int64_t units);  // fits(units) is required
  void give_back(const GpuShare& share);
  std::vector<std::string> names(const GpuShare& share) const;
  int64_t taken() const;  // units held, over all devices

 private:
  // The fullest device that has room for a fraction of `units`, or -1.
  int pick(int64_t units) const;

  std::vector<std::string> names_;
  // Units, by device: what the pool has of it, and what is free of that.
  std::vector<int64_t> total_, free_;
};

}  // namespace rt::node
