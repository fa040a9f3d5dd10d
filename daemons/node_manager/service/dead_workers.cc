#include "daemons/node_manager/service/dead_workers.h"

#include "common/base/clock.h"

namespace rt::node {

DeadWorkers::DeadWorkers(net::Loop& loop, HeadLink& head, const Sessions& sessions,
                         StoreLink* store)
    : head_(head), sessions_(sessions), store_(store), alarm_(loop, [this] { tell(); }) {}

void DeadWorkers::add(const WorkerId& id) {
  news_.died(id, system_now());
  alarm_.ring_by(news_.next_tick_us());
}

void DeadWorkers::tell() {
  if (const auto told = news_.tick(system_now())) {
    head_.send_reliably(&proto::HeadService::Stub::ReportDeadWorkers, told->head);
    sessions_.tell_processes(told->processes);
    if (store_) store_->owners_gone(told->store);
  }
  alarm_.ring_by(news_.next_tick_us());
}

}  // namespace rt::node
