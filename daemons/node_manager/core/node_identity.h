// A NodeIdentity says which node this is and what it offers to the cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/resources/resource_set.h"
#include "common/scheduling/constraint.h"

namespace rt::node {

struct NodeIdentity {
  NodeId id;
  std::string ip;
  int port = 0;
  ResourceSet total;
  uint64_t seed = 1;  // for the generator of worker ids
  scheduling::Labels labels = {};
  std::vector<std::string> gpu_names = {};  // by device; a missing name is the device's number
};

}  // namespace rt::node
