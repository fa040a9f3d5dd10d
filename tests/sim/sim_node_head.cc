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
  out.on_lost = [this] { drive([](node::NodeCore& core, Now now) { core.head_lost(now); }); };
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
  nodes_changed(membership_.since_registration(reply.nodes()));
  if (!alive()) return;
  for (const std::string& id : reply.dead_jobs()) job_finished(JobId::from_binary(id));
  send_report();
  pace_.begin_heartbeats(clock_.now());
  arm_report();
  sessions_.open();
  reports_.registered();
}

void SimNode::on_head_event(const proto::HeadEvent& event) {
  if (event.nodes_size() > 0) nodes_changed(event.nodes());
  for (const std::string& id : event.finished_jobs()) {
    if (alive()) job_finished(JobId::from_binary(id));
  }
  for (const std::string& id : event.over_jobs()) {
    if (alive()) job_over(JobId::from_binary(id));
  }
  // The model's processes have no references to what others own: only the store is told.
  if (alive() && event.dead_workers_size() > 0)
    owners_gone(node::DeathNews::heard(event.dead_workers()).store);
}

void SimNode::nodes_changed(const google::protobuf::RepeatedPtrField<proto::Node>& nodes) {
  const node::Membership::Turn turn = membership_.changed(nodes);
  if (turn.dead) return leave(Exit::kOrderly);
  if (turn.news.nodes_size() > 0)
    sessions_.tell_drivers("nodes",
                           [news = turn.news](Channel& at) { owner_at(at).on_head_event(news); });
  drive([&](node::NodeCore& core, Now now) {
    for (const proto::Node& node : nodes) core.node_changed(node);
    core.nodes_settled(now);
  });
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
