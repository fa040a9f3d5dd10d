// The seats of actors in the bundles of placement groups, and what the actors take of their
// bundles. Tasks use bundles as well and only the node knows of them, so it is the node that
// decides in the end whether an actor finds room in its bundle.
#pragma once

#include <map>
#include <utility>

#include "common/resources/resource_set.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/groups.h"

namespace rt::head {

class BundleSeats {
 public:
  // Chooses the bundle for an actor that needs `amount`: `wanted`, or with -1 the first one that
  // seems to have room. The bundle's node must take work. Returns -1 when there is none now.
  int choose(const Group& group, int wanted, const ResourceSet& amount, const Cluster& cluster,
             Now now) const;
  // Seats the actor in the bundle, of which it takes `amount` from now on.
  void take(const GroupId& group, int bundle, const ActorId& actor, const ResourceSet& amount);
  void leave(const GroupId& group, int bundle, const ActorId& actor);
  // The bundle's node had no room for an actor, so choose() passes the bundle over until
  // `until_us`.
  void refuse(const GroupId& group, int bundle, int64_t until_us);
  // Drops what is known of a removed group, whose actors have left.
  void forget(const GroupId& group);
  // Returns the part of the bundle that actors take.
  ResourceSet used(const GroupId& group, int bundle) const;

 private:
  struct Bundle {
    std::map<ActorId, ResourceSet> actors;
    ResourceSet used;
    int64_t refused_until_us = 0;  // By the steady clock.
  };
  std::map<std::pair<GroupId, int>, Bundle> bundles_;
};

}  // namespace rt::head
