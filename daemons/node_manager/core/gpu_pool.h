// Which GPUs of this node are whose. The amounts are LocalResources' affair; this says which
// devices they are: a request of 1 or more gets whole devices, a fraction a part of one that others
// share. So a whole device may be missing although the sum is there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/resources/resource_set.h"

namespace rt::node {

using GpuShare = std::vector<std::pair<int, int64_t>>;  // device and units of it

class GpuPool {
 public:
  // One name per device; more are named by their number.
  GpuPool(int count, std::vector<std::string> names);

  bool empty() const { return free_.empty(); }
  bool fits(int64_t units) const;
  GpuShare take(int64_t units);  // RT_CHECKs fits()
  void give_back(const GpuShare& share);
  std::vector<std::string> names(const GpuShare& share) const;
  int64_t taken() const;

 private:
  int pick(int64_t units) const;  // for a fraction: the fullest that has room; -1: none

  std::vector<std::string> names_;
  std::vector<int64_t> free_;
};

}  // namespace rt::node
