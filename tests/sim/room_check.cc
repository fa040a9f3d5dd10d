#include "tests/sim/room_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "tests/sim/sim_node.h"

namespace rt::sim {
namespace {

// The bundles of this node in which such a process may work.
std::vector<node::RoomKey> rooms_for(const SimNode& node, const SimWorker::InGroup& in) {
  std::vector<node::RoomKey> rooms;
  for (const auto& [key, bundle] : node.core().view().bundles().all()) {
    if (key.group == in.group && (in.bundle < 0 || key.index == in.bundle)) rooms.push_back(key);
  }
  return rooms;
}

std::string describe(const SimWorker& worker) {
  const auto& [group, bundle] = worker.in_group();
  return fmt::format("worker #{} in bundle {} of group {}", worker.number(), bundle,
                     group.hex().substr(0, 8));
}

// Whether the worker counts: the core does not count one that was asked to leave, although that may
// still finish its task or have to be killed.
const TaskPlan* computing(const SimNode& node, const WorkerId& id, const SimWorker& worker) {
  const node::Worker* known = node.core().view().worker(id);
  return known && known->state != node::WorkerState::kDying ? worker.computing() : nullptr;
}

void check_devices(const SimNode& node) {
  std::map<std::string, int64_t> used;
  for (const auto& [id, process] : node.processes()) {
    const TaskPlan* plan = computing(node, id, *process.worker);
    const int64_t units = plan ? plan->resources.units("GPU") : 0;
    if (units == 0) continue;
    const auto devices = static_cast<int64_t>(process.gpus.size());
    if (devices != std::max<int64_t>(1, units / ResourceSet::kUnit))
      violation(fmt::format("worker #{} has {} devices for a task that wants {}",
                            process.worker->number(), devices, plan->resources.to_string()));
    for (const std::string& device : process.gpus) {
      used[device] += units / devices;
      if (used[device] > ResourceSet::kUnit)
        violation(fmt::format("GPU {} of node #{} is shared out twice", device, node.number()));
    }
  }
}

}  // namespace

void check_computing(const SimNode& node) {
  const node::Bundles& bundles = node.core().view().bundles();
  ResourceSet plain;
  std::map<node::RoomKey, ResourceSet> used;  // index -1: by all tasks of the group
  for (const auto& [id, process] : node.processes()) {
    const TaskPlan* plan = computing(node, id, *process.worker);
    if (!plan) continue;
    if (plan->group.is_nil()) {
      plain.add(plan->resources);
      continue;
    }
    used[{plan->group, -1}].add(plan->resources);
    if (plan->bundle >= 0) used[{plan->group, plan->bundle}].add(plan->resources);
  }
  for (const auto& [room, amount] : used) {
    ResourceSet held;
    for (const node::RoomKey& key : rooms_for(node, {room.group, room.index}))
      held.add(bundles.find(key)->room.resources().total());
    if (!held.contains(amount))
      violation(fmt::format("tasks in bundle {} of group {} on node #{} use {} of {}", room.index,
                            room.group.hex().substr(0, 8), node.number(), amount.to_string(),
                            held.to_string()));
  }
  ResourceSet unreserved = node.total();
  unreserved.subtract(bundles.reserved());
  if (!unreserved.contains(plain))
    violation(fmt::format("tasks in no group on node #{} use {} of {}", node.number(),
                          plain.to_string(), unreserved.to_string()));
  check_devices(node);
}

void check_start(const World& world, const SimNode& node, const SimWorker& worker) {
  if (const TaskPlan* plan = worker.computing()) {
    const bool gpu = plan->resources.units("GPU") > 0;
    auto process = node.processes().find(worker.id());
    if (process != node.processes().end() && process->second.kind.gpu != gpu)
      violation(fmt::format("worker #{} was started for tasks with{} GPU, now one with {} starts",
                            worker.number(), gpu ? "out" : "", plan->resources.to_string()));
  }
  const SimWorker::InGroup& in = worker.in_group();
  if (in.group.is_nil()) return;
  const std::vector<node::RoomKey> rooms = rooms_for(node, in);
  // It may start while the request to leave is on its way to it.
  const node::Worker* known = node.core().view().worker(worker.id());
  const bool leaves = known && known->state == node::WorkerState::kDying;
  auto committed = [&](const node::RoomKey& key) {
    const node::Bundle* bundle = node.core().view().bundles().find(key);
    return (!bundle->returning || leaves) &&
           world.ledger.groups().was_committed(key.group, key.index, node.id(), bundle->epoch);
  };
  if (std::none_of(rooms.begin(), rooms.end(), committed))
    violation(
        fmt::format("{} starts on node #{}, which holds {} such bundles, and none that is "
                    "committed",
                    describe(worker), node.number(), rooms.size()));
}

void check_held_rooms(const SimNode& node) {
  for (const auto& [id, process] : node.processes()) {
    const SimWorker::InGroup& in = process.worker->in_group();
    if (!in.group.is_nil() && rooms_for(node, in).empty())
      violation(fmt::format("node #{} holds no room for {}, which is not reaped", node.number(),
                            describe(*process.worker)));
  }
}

}  // namespace rt::sim
