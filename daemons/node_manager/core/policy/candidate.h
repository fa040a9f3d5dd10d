// A node as a scheduling policy sees it.
#pragma once

#include <vector>

#include "common/resources/resource_set.h"

namespace rt::node {

struct Candidate {
  const ResourceSet* total = nullptr;      // borrowed for the duration of the decision
  const ResourceSet* available = nullptr;  // believed to be free there; borrowed as well
  bool local = false;                      // this node
};

inline constexpr int kNoNode = -1;

}  // namespace rt::node
