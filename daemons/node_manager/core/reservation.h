// Resources are set aside for starved demands, so that smaller ones do not overtake
// them for ever: with a stream of tasks that need one CPU, no task that needs four would ever run.
// This file decides for which demands. Each room of the node (room.h) is looked at by itself: a
// demand waits for one, and what others hold is of no use to it.
//
// Setting aside keeps resources from tasks that could run. It must never keep them from tasks that
// have to run before the starved demand can be served, or nothing goes on:
//
//   A task holds R and waits in get() for its child, and a starved demand needs R and CPUs. If the
//   CPUs were set aside, the child would not run, the task not end, and R not come back.
//
// Three rules prevent that. Each is about what the node-manager can know:
//
// 1. Nothing is set aside for a demand unless what it lacks comes back by itself: all of it is free
//    or held by tasks that run (Prospect). What a blocked task holds comes back only after others
//    have run. What an actor or an entrypoint holds comes back when its owner pleases, and the
//    owner may wait for the very tasks that would be kept from running. The rule is applied anew in
//    each pass, so a running task that blocks ends the reservation at that moment. While it does
//    not hold, the demand is still the first to be served in each pass; only what is free for
//    shorter than that goes to others.
// 2. A task may wait without blocking, for example in a loop around `ray.wait(timeout=0)`, and so
//    looks as if it ran. Therefore resources are set aside only for half of the time, in periods
//    that double. A task that is wrongly kept from running waits for less than a period, which is
//    half of the time that the demand has waited when it begins. And since the periods grow beyond
//    the duration of any task, the demand is served in the end.
// 3. A running task whose process has a demand of its own here may wait for just that. If a starved
//    demand cannot be served without what such parents hold, what is set aside for it is kept from
//    all but them: it has to wait for them anyway, and their children would wait for it. No new
//    parent comes in meanwhile, so that they become fewer. If it can do without them, it is kept
//    from their children, too, because a parent may have new ones for ever. Parents on other nodes,
//    and tasks that wait for tasks of others, are left to rule 2.
#pragma once

#include <cstdint>
#include <span>

#include "common/resources/resource_set.h"
#include "daemons/node_manager/core/room.h"

namespace rt::node {

// The resources that are free in a room once everything that needs no help from others has ended.
class Prospect {
 public:
  explicit Prospect(const Room& room)
      : resources_(room.resources().available()), gpus_(room.gpus()) {}

  // `held` and the devices `gpus` come back by themselves.
  void add(const ResourceSet& held, const GpuShare& gpus);
  bool covers(const ResourceSet& request) const;
  // Whether all of the requests are covered together; `sum` is their sum.
  bool covers_all(const ResourceSet& sum, std::span<const ResourceSet> requests) const;
  const ResourceSet& resources() const { return resources_; }

 private:
  ResourceSet resources_;
  GpuPool gpus_;
};

// Returns true if rule 2 allows to set resources aside for a demand that has waited for `waited_us`
// and counts as starved after `starved_after_us`.
bool may_set_aside(int64_t waited_us, int64_t starved_after_us);

}  // namespace rt::node
