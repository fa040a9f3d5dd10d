// The attempts to reserve bundles that wait on this node until leases have been revoked for them,
// and the attempts that have ended here without bundles, so that a request that is repeated or
// comes late gets the same answer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/resources/resource_set.h"

namespace rt::node {

// The bundles of one PrepareBundles request; all of them are reserved or none.
struct BundleAttempt {
  GroupId group;
  int64_t epoch = 0;
  std::vector<int> indexes;
  std::vector<ResourceSet> parts;  // By position in `indexes`: the needs of that bundle.
  ResourceSet sum;                 // The sum of `parts`.
  int64_t since_us = 0;
};

class BundleLine {
 public:
  // Attempts that ended are remembered for so many groups.
  static constexpr size_t kMaxEnded = 10'000;
  struct Ended {
    int64_t epoch = 0;  // this attempt and all earlier ones have ended
    std::string why;
  };

  bool empty() const { return waiting_.empty(); }
  const std::deque<BundleAttempt>& waiting() const { return waiting_; }  // oldest first
  // Returns null if no attempt of the group waits.
  const BundleAttempt* find(const GroupId& group) const;
  // No other attempt of the group waits.
  void add(BundleAttempt attempt);
  void remove(const GroupId& group);

  // An earlier end of a later attempt stays in force.
  void end(const GroupId& group, int64_t epoch, const std::string& why);
  // Returns null if no attempt of the group has ended here, or that is too long ago.
  const Ended* ended(const GroupId& group) const;

  // The amounts that are kept free for the attempts that wait. Demands and actors must leave
  // them alone.
  const ResourceSet& aside() const { return aside_; }
  void clear_aside() { aside_ = {}; }
  // Nothing is set aside during a pause (see pause()).
  void set_aside(const ResourceSet& amount, Now now);
  // An attempt has waited in vain for `waited_us`. What was set aside for it is left to others for
  // as long: among them may be tasks that others wait for before they give anything back (rule 2 of
  // reservation.h).
  void pause(int64_t waited_us, Now now) { paused_until_us_ = now.steady_us + waited_us; }

 private:
  std::deque<BundleAttempt> waiting_;
  std::map<GroupId, Ended> ended_;
  std::deque<GroupId> ended_order_;  // keys of ended_, oldest first
  ResourceSet aside_;
  int64_t paused_until_us_ = 0;
};

}  // namespace rt::node
