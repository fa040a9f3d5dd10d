#include "daemons/node_manager/core/worker_pool.h"

#include "daemons/node_manager/core/local_resources.h"

namespace rt::node {

WorkerPool::WorkerPool(const NodeId& node, uint64_t seed) : node_(node), rng_(seed) {}

WorkerPool::~WorkerPool() = default;

std::string_view state_name(WorkerState state) {
  static constexpr std::string_view kNames[] = {"starting", "idle",   "leased",
                                                "actor",    "driver", "dying"};
  return kNames[static_cast<int>(state)];
}

ResourceSet releasable_resources(const Worker& worker) {
  ResourceSet held = worker.held;
  if (worker.blocked) held.subtract(cpu_part(worker.held));
  return held;
}

Worker& WorkerPool::add_starting(const WorkerKind& kind, Now now) {
  auto worker = std::make_unique<Worker>();
  worker->id = make_worker_id(node_, rng_);
  worker->kind = kind;
  worker->since_us = now.steady_us;
  Worker& added = *worker;
  workers_[added.id] = std::move(worker);
  ++counts_[static_cast<int>(WorkerState::kStarting)];
  ++starting_[kind];
  return added;
}

Worker& WorkerPool::add_driver(const WorkerId& id, JobId job, Now now) {
  RT_CHECK(!find(id));
  auto worker = std::make_unique<Worker>();
  worker->id = id;
  worker->job = job;
  worker->state = WorkerState::kDriver;
  worker->since_us = now.steady_us;
  worker->connected = true;
  Worker& added = *worker;
  workers_[id] = std::move(worker);
  ++counts_[static_cast<int>(WorkerState::kDriver)];
  return added;
}

Worker* WorkerPool::find(const WorkerId& id) {
  auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : it->second.get();
}

const Worker* WorkerPool::find(const WorkerId& id) const {
  auto it = workers_.find(id);
  return it == workers_.end() ? nullptr : it->second.get();
}

void WorkerPool::set_state(Worker& worker, WorkerState next, Now now) {
  using S = WorkerState;
  S old = worker.state;
  bool legal = (next == S::kDying && old != S::kDying) ||
               (old == S::kStarting && next == S::kIdle) ||
               (old == S::kIdle && (next == S::kLeased || next == S::kActor)) ||
               (old == S::kLeased && next == S::kIdle);
  RT_CHECK(legal);
  --counts_[static_cast<int>(old)];
  ++counts_[static_cast<int>(next)];
  if (old == S::kIdle) idle_.erase(worker.id);
  if (old == S::kStarting && --starting_[worker.kind] == 0) starting_.erase(worker.kind);
  if (next == S::kIdle) idle_.insert(worker.id);
  worker.state = next;
  worker.since_us = now.steady_us;
}

void WorkerPool::set_blocked(Worker& worker, bool blocked) {
  if (worker.blocked == blocked) return;
  worker.blocked = blocked;
  if (worker.state == WorkerState::kLeased) blocked_ += blocked ? 1 : -1;
}

void WorkerPool::remove(const WorkerId& id) {
  auto it = workers_.find(id);
  RT_CHECK(it != workers_.end() && it->second->state == WorkerState::kDying);
  --counts_[static_cast<int>(WorkerState::kDying)];
  workers_.erase(it);
}

Worker* WorkerPool::idle_for(const WorkerKind& kind, JobId job, bool outlives_job) {
  for (const WorkerId& id : idle_) {
    Worker* worker = find(id);
    if (worker->kind == kind && worker->job == job && worker->outlives_job == outlives_job)
      return worker;
  }
  return unused(kind);
}

Worker* WorkerPool::unused(const WorkerKind& kind) {
  for (const WorkerId& id : idle_) {
    Worker* worker = find(id);
    if (worker->kind == kind && worker->job.is_nil()) return worker;
  }
  return nullptr;
}

Worker* WorkerPool::longest_idle() {
  Worker* oldest = nullptr;
  for (const WorkerId& id : idle_) {
    Worker* worker = find(id);
    if (!oldest || worker->since_us < oldest->since_us) oldest = worker;
  }
  return oldest;
}

int WorkerPool::starting(const WorkerKind& kind) const {
  auto it = starting_.find(kind);
  return it == starting_.end() ? 0 : it->second;
}

void WorkerPool::check_invariants() const {
  int counted[6] = {}, blocked = 0;
  for (const auto& [id, worker] : workers_) {
    ++counted[static_cast<int>(worker->state)];
    RT_CHECK((worker->state == WorkerState::kIdle) == idle_.contains(id));
    RT_CHECK((worker->state == WorkerState::kLeased) == (worker->lease != 0));
    RT_CHECK((worker->state == WorkerState::kActor) == !worker->actor.is_nil());
    bool busy = worker->state == WorkerState::kLeased || worker->state == WorkerState::kActor;
    RT_CHECK(busy || (worker->held.empty() && !worker->blocked));
    RT_CHECK(!busy || !worker->job.is_nil());
    blocked += worker->blocked && worker->state == WorkerState::kLeased;
  }
  RT_CHECK(blocked == blocked_);
  for (int i = 0; i < 6; ++i) RT_CHECK(counted[i] == counts_[i]);
}

}  // namespace rt::node
