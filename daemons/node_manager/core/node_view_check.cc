// NodeView: the invariants of the records.
#include <map>
#include <set>

#include "daemons/node_manager/core/node_view.h"

namespace rt::node {
namespace {

// The amounts that are held in each room according to the records.
class HeldByRoom {
 public:
  void add(const RoomKey& room, const ResourceSet& held, const GpuShare& gpus) {
    Held& all = rooms_[room];
    all.resources.add(held);
    for (const auto& [device, units] : gpus) all.devices[device] += units;
  }
  // Checks that what is free in the room and what is held there add up to its total, and no device
  // is given out beyond what the room has of it.
  void check(const RoomKey& key, const Room& room, const std::map<int, int64_t>& devices) {
    Held& held = rooms_[key];
    int64_t taken = 0;
    for (const auto& [device, units] : held.devices) {
      taken += units;
      RT_CHECK(devices.contains(device) && units <= devices.at(device));
    }
    RT_CHECK(taken == room.gpus().taken());
    held.resources.add(room.resources().available());
    RT_CHECK(held.resources == room.resources().total());
    rooms_.erase(key);
  }
  bool empty() const { return rooms_.empty(); }

 private:
  struct Held {
    ResourceSet resources;
    std::map<int, int64_t> devices;
  };
  std::map<RoomKey, Held> rooms_;
};

std::map<int, int64_t> devices_of_node(const Room& node) {
  std::map<int, int64_t> devices;
  const int64_t units = node.resources().total().units("GPU");
  for (int i = 0; i * ResourceSet::kUnit < units; ++i) devices[i] = ResourceSet::kUnit;
  return devices;
}

}  // namespace

void NodeView::check_invariants() const {
  node_.workers.check_invariants();
  leases().check_invariants();
  HeldByRoom held;
  for (const auto& [id, hold] : node_.job_holds.all())
    held.add(RoomKey(), hold.resources, hold.gpus);
  std::set<RoomKey> occupied;
  for (const auto& [id, worker] : pool().all()) {
    held.add(worker->room, releasable_resources(*worker), worker->gpus);
    occupied.insert(worker->room);
    if (worker->state == WorkerState::kLeased) {
      auto it = leases().leases().find(worker->lease);
      RT_CHECK(it != leases().leases().end() && it->second.worker == id);
      RT_CHECK((worker->held.units("GPU") > 0) == worker->kind.gpu);
    }
    if (worker->state == WorkerState::kActor) {
      const HostedActor* actor = node_.actors.find(worker->actor);
      RT_CHECK(actor && actor->worker == id && actor->room == worker->room);
    }
    if (worker->state == WorkerState::kStarting || worker->state == WorkerState::kIdle)
      RT_CHECK(worker->room.is_node());
  }
  node_.actors.check_invariants();
  for (const ActorId& id : node_.actors.waiting()) {
    const HostedActor& actor = node_.actors.at(id);
    if (actor.state == HostedActor::State::kWaitingWorker)
      held.add(actor.room, actor.placement, actor.gpus);
  }
  for (const auto& [key, bundle] : node_.rooms.bundles().all()) {
    std::map<int, int64_t> devices;
    for (const auto& [device, units] : bundle.devices) devices[device] += units;
    held.check(key, bundle.room, devices);
    held.add(RoomKey(), bundle.room.resources().total(), bundle.devices);
    // A bundle that is given back stays only because of those who were in it.
    RT_CHECK(!bundle.returning || occupied.contains(key));
  }
  held.check(RoomKey(), node_.rooms.node(), devices_of_node(node_.rooms.node()));
  RT_CHECK(held.empty());
  for (const BundleAttempt& attempt : node_.bundle_line.waiting())
    RT_CHECK(attempt.parts.size() == attempt.indexes.size() && !drain());
  for (const auto& [id, lease] : leases().leases()) {
    const Worker* worker = pool().find(lease.worker);
    RT_CHECK(worker && worker->state == WorkerState::kLeased && worker->lease == id);
  }
}

}  // namespace rt::node
