#include "daemons/node_manager/service/dead_workers.h"

#include <utility>

#include "common/base/clock.h"

namespace rt::node {
namespace {
constexpr int64_t kGatherUs = 5'000;
}  // namespace

DeadWorkers::DeadWorkers(net::Loop& loop, HeadLink& head, const Sessions& sessions,
                         StoreLink* store)
    : head_(head), sessions_(sessions), store_(store), alarm_(loop, [this] { tell(); }) {}

void DeadWorkers::add(const WorkerId& id) {
  *batch_.Add() = id.binary();
  if (!alarm_.is_set() && !stopped_) alarm_.ring_by(steady_now_us() + kGatherUs);
}

void DeadWorkers::tell() {
  const auto batch = std::exchange(batch_, {});
  proto::DeadWorkers dead;
  *dead.mutable_worker_ids() = batch;
  head_.send_reliably(&proto::HeadService::Stub::ReportDeadWorkers, dead);
  proto::HeadEvent event;
  *event.mutable_dead_workers() = batch;
  sessions_.tell_processes(event);
  proto::OwnersGone gone;
  *gone.mutable_worker_ids() = batch;
  if (store_) store_->owners_gone(gone);
}

}  // namespace rt::node
