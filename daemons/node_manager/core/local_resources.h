// This node's resources: the total, and what is free of it. A task that blocks gives its CPU back
// and takes it again as soon as it goes on, even if the CPU has been lent to another task
// meanwhile. `available` may therefore be negative for a while.
#pragma once

#include "common/resources/resource_set.h"

namespace rt::node {

class LocalResources {
 public:
  explicit LocalResources(ResourceSet total) : total_(std::move(total)), available_(total_) {}

  const ResourceSet& total() const { return total_; }
  const ResourceSet& available() const { return available_; }
  bool feasible(const ResourceSet& request) const { return total_.contains(request); }
  bool fits(const ResourceSet& request) const { return available_.contains(request); }
  // Increases with every change of `available`; it versions the reports to the head.
  int64_t version() const { return version_; }

  void acquire(const ResourceSet& request);  // fits(request) is required
  void acquire_with_debt(const ResourceSet& request);
  void release(const ResourceSet& request);

 private:
  ResourceSet total_, available_;
  int64_t version_ = 0;
};

// The part of a request that a blocked process gives back: its CPUs.
ResourceSet cpu_part(const ResourceSet& request);

}  // namespace rt::node
