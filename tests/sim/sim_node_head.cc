// SimNode: the link to the head.
#include <algorithm>

#include "daemons/node_manager/core/registration.h"
#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {

NodeHead::Events SimNode::head_events() {
  NodeHead::Events out;
  out.connect = [this](std::function<void(Result<ChannelPtr>)> done) {
    network_.connect(
        *this, kHeadHost, "node connects", [this] { return listening_head(world_); },
        std::move(done));
  };
  out.ring_by = [this](Alarm& alarm, int64_t at_us, std::function<void()> ring) {
    ring_by(alarm, at_us, "head again", std::move(ring));
  };
  out.fill_registration = [this](proto::RegisterNodeRequest* request) {
    fill_registration(request);
  };
  out.on_registered = [this](const proto::RegisterNodeReply& reply) { on_registered(reply); };
  out.on_lost = [this] { news_.news().lost("its connection is gone"); };
  out.on_fatal = [this] { leave(Exit::kOrderly); };
  return out;
}

void SimNode::fill_registration(proto::RegisterNodeRequest* request) const {
  proto::ResourceReport report;
  core_.view().fill_report(&report);
  node::fill_node(core_, report, request->mutable_node());
  request->mutable_node()->set_is_head(is_head_node_);
  node::fill_holdings(core_, request);
  sessions_.fill_jobs(request);
  reports_.fill_jobs(request);
}

void SimNode::on_registered(const proto::RegisterNodeReply& reply) {
  news_.news().registered(reply, !sessions_.is_open());
  if (!alive()) return;
  proto::SubscribeRequest news;
  news.set_nodes(true);
  head_.channel()->call<proto::Empty>(
      "subscribe",
      [news](Channel& at, Answer<proto::Empty> answer) {
        head_at(at).subscribe(at, news, std::move(answer));
      },
      [](const Result<proto::Empty>&) {});
  send_report();
  pace_.begin_heartbeats(clock_.now());
  arm_report();
  sessions_.open();
  reports_.registered();
}

void SimNode::on_head_event(const proto::HeadEvent& event) {
  news_.news().event(event);
  if (alive()) LinkLedger::check_goes_on(me_.id, event);
}

// ---- reports

void SimNode::resources_changed() {
  if (!alive() || pace_.is_planned()) return;
  pace_.changed();
  arm_report();
}

void SimNode::arm_report() {
  ring_by(report_alarm_, pace_.next_tick_us(), "report", [this] {
    if (pace_.tick(clock_.now())) send_report();
    arm_report();
  });
}

void SimNode::send_report() {
  pace_.sent(clock_.now());
  Channel* head = head_.channel();
  if (!head) return;
  proto::ResourceReport report;
  core_.view().fill_report(&report);
  head->send("report", [report](Channel& at) { head_at(at).report_resources(at, report); });
}

}  // namespace rt::sim
