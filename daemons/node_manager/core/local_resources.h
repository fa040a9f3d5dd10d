// What this node has and what of it is free. A blocked task gives its CPU back; coming back it
// takes it at once, so that `available` may be below zero for a while.
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
  // Grows with each change of `available`.
  int64_t version() const { return version_; }

  void acquire(const ResourceSet& request);  // RT_CHECKs fits()
  void acquire_with_debt(const ResourceSet& request);
  void release(const ResourceSet& request);

 private:
  ResourceSet total_, available_;
  int64_t version_ = 0;
};

// The part of a request that a blocked process gives back.
ResourceSet cpu_part(const ResourceSet& request);

// The highest fraction in use of any resource of `request`, once it is granted: 0 for an empty
// request, above 1 when it does not fit.
double utilisation_after(const ResourceSet& total, const ResourceSet& available,
                         const ResourceSet& request);

}  // namespace rt::node
