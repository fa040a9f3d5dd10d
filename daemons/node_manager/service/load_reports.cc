#include "daemons/node_manager/service/load_reports.h"

#include <utility>

#include "common/base/clock.h"

namespace rt::node {

LoadReports::LoadReports(net::Loop& loop, const Settings& settings, HeadLink& head, Fill fill)
    : head_(head), fill_(std::move(fill)), pace_(settings), alarm_(loop, [this] { tick(); }) {}

void LoadReports::changed() {
  if (pace_.is_planned() || stopped_) return;
  pace_.changed();
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::hurry() {
  if (pace_.is_planned() && !stopped_) send();
}

void LoadReports::begin() {
  send();
  pace_.begin_heartbeats(system_now());
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::tick() {
  if (pace_.tick(system_now())) send();
  alarm_.ring_by(pace_.next_tick_us());
}

void LoadReports::send() {
  proto::ResourceReport report;
  fill_(&report);
  head_.send_oneway(&proto::HeadService::Stub::ReportResources, report);
  pace_.sent(system_now());
}

}  // namespace rt::node
