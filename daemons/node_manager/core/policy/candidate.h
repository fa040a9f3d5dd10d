// A node as a scheduling policy sees it.
#pragma once

#include <vector>

#include "common/resources/resource_set.h"

namespace rt::node {

struct Candidate {
  const ResourceSet* total = nullptr;      // outlives the decision
  const ResourceSet* available = nullptr;  // what is believed to be free there
  bool local = false;
};

inline constexpr int kNoNode = -1;

}  // namespace rt::node
