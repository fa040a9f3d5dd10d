#include "daemons/node_manager/core/death_news.h"

#include <utility>

namespace rt::node {
namespace {
constexpr int64_t kGatherUs = 5'000;
}  // namespace

void DeathNews::died(const WorkerId& id, Now now) {
  *dead_.Add() = id.binary();
  if (due_us_ < 0 && !stopped_) due_us_ = now.steady_us + kGatherUs;
}

std::optional<DeathNews::Told> DeathNews::tick(Now now) {
  if (due_us_ < 0 || now.steady_us < due_us_) return {};
  due_us_ = -1;
  const WorkerIds dead = std::exchange(dead_, {});
  Told told = heard(dead);
  *told.head.mutable_worker_ids() = dead;
  return told;
}

DeathNews::Told DeathNews::heard(const WorkerIds& dead) {
  Told told;
  *told.processes.mutable_dead_workers() = dead;
  // The store may have copies of objects that they owned.
  *told.store.mutable_worker_ids() = dead;
  return told;
}

}  // namespace rt::node
