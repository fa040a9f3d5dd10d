#include "daemons/node_manager/service/load_reports.h"

#include <algorithm>

#include "common/base/clock.h"

namespace rt::node {

LoadReports::LoadReports(net::Loop& loop, const Settings& settings, HeadLink& head, NodeParts node)
    : head_(head), node_(node), pace_(settings), alarm_(loop, [this] { tick(); }) {}

void LoadReports::changed() {
  if (pace_.is_planned() || stopped_) return;
  pace_.changed();
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::hurry() {
  if (pace_.is_planned() && !stopped_) send();
}

void LoadReports::begin() {
  if (stopped_) return;
  send();
  pace_.begin_heartbeats(system_now());
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::tick() {
  if (pace_.tick(system_now())) send();
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::fill(proto::ResourceReport* report) const {
  node_.core.view().fill_report(report);
  node_.sessions.fill_waiting(report);
  const StoreLink* store = node_.store;
  if (!store) return;
  auto free = report->mutable_available()->mutable_units()->find("object_store_memory");
  if (free != report->mutable_available()->mutable_units()->end())
    free->second = std::max<int64_t>(0, free->second - store->used() * ResourceSet::kUnit);
  report->set_problem(store->problem());
  if (const auto* waits = store->waits()) *report->mutable_store_waits() = *waits;
}

void LoadReports::send() {
  proto::ResourceReport report;
  fill(&report);
  head_.send_oneway(&proto::HeadService::Stub::ReportResources, report);
  pace_.sent(system_now());
}

}  // namespace rt::node
