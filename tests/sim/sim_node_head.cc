// SimNode: the link to the head.
#include <algorithm>

#include "daemons/node_manager/core/registration.h"
#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {
namespace {
constexpr int64_t kReportTimeoutUs = 30'000'000;
}

template <class Request>
void SimNode::report_reliably(const char* what,
                              void (*deliver)(Channel&, const Request&, Answer<proto::Empty>),
                              const Request& request, node::HeadQueue::Until until) {
  auto send = [this, what, deliver, request](node::HeadQueue::Done done) {
    head_->call<proto::Empty>(
        what,
        [deliver, request](Channel& at, Answer<proto::Empty> answer) {
          deliver(at, request, std::move(answer));
        },
        [done](Result<proto::Empty> reply) { done(reply || !may_recover(reply.error().code)); },
        kReportTimeoutUs);
  };
  queue_.add(std::move(send), until);
}
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::FinishJobRequest&,
                                                Answer<proto::Empty>),
                                       const proto::FinishJobRequest&, node::HeadQueue::Until);
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::ActorStarted&,
                                                Answer<proto::Empty>),
                                       const proto::ActorStarted&, node::HeadQueue::Until);
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::DeadWorkers&,
                                                Answer<proto::Empty>),
                                       const proto::DeadWorkers&, node::HeadQueue::Until);
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::ActorDied&,
                                                Answer<proto::Empty>),
                                       const proto::ActorDied&, node::HeadQueue::Until);

void SimNode::act(const node::HeadSession::Turn& turn) {
  if (turn.give_up) return leave(Exit::kOrderly);
  if (turn.close) head_->close();
  if (turn.connect) connect_head();
  ring_by(head_alarm_, session_.next_tick_us(), "head again",
          [this] { act(session_.tick(clock_.now())); });
}

void SimNode::connect_head() {
  network_.connect(
      *this, kHeadHost, "node connects", [this] { return listening_head(world_); },
      [this](Result<ChannelPtr> channel) {
        if (!channel) return act(session_.failed(channel.error(), clock_.now()));
        head_ = *channel;
        head_->on_closed = [this] { head_lost(); };
        proto::RegisterNodeRequest request;
        fill_registration(&request);
        queue_.registering();
        head_->call<proto::RegisterNodeReply>(
            "register node",
            [request](Channel& at, Answer<proto::RegisterNodeReply> answer) {
              head_at(at).register_node(at, request, std::move(answer));
            },
            [this, current = head_.get()](Result<proto::RegisterNodeReply> reply) {
              if (head_.get() != current) return;
              if (!reply) return act(session_.refused(reply.error()));
              session_.registered();
              on_registered(*reply);
              if (registered()) queue_.open();
            },
            world_.settings.connect_timeout_ms * 1000);
      });
}

void SimNode::head_lost() {
  head_.reset();
  queue_.close();
  if (session_.lost(clock_.now()))
    drive([](node::NodeCore& core, Now now) { core.head_lost(now); });
  act(session_.failed(make_error(Code::kUnavailable, "lost"), clock_.now()));
}

void SimNode::fill_registration(proto::RegisterNodeRequest* request) const {
  proto::ResourceReport report;
  core_.view().fill_report(&report);
  node::fill_node(core_, report, request->mutable_node());
  request->mutable_node()->set_is_head(is_head_node_);
  node::fill_holdings(core_, request);
  desk_.fill_jobs(request);
}

void SimNode::on_registered(const proto::RegisterNodeReply& reply) {
  nodes_changed(membership_.since_registration(reply.nodes()), true);
  if (!alive()) return;
  for (const std::string& id : reply.dead_jobs()) job_finished(JobId::from_binary(id));
  send_report();
  pace_.begin_heartbeats(clock_.now());
  arm_report();
  desk_.open();
  for (auto& waiting : std::exchange(waiting_, {})) waiting();
}

void SimNode::on_head_event(const proto::HeadEvent& event) {
  if (event.nodes_size() > 0) nodes_changed(event.nodes(), true);
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

void SimNode::nodes_changed(const google::protobuf::RepeatedPtrField<proto::Node>& nodes,
                            bool tell_drivers) {
  const node::Membership::Turn turn = membership_.changed(nodes);
  if (turn.dead) return leave(Exit::kOrderly);
  for (const proto::Node& node : nodes) core_.node_changed(node);
  for (const auto& [id, session] : sessions_) {
    if (tell_drivers && session.is_driver && turn.news.nodes_size() > 0)
      session.channel->send("nodes",
                            [news = turn.news](Channel& at) { owner_at(at).on_head_event(news); });
  }
  drive([](node::NodeCore& core, Now now) { core.nodes_settled(now); });
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
  if (!registered()) return;
  proto::ResourceReport report;
  core_.view().fill_report(&report);
  head_->send("report", [report](Channel& at) { head_at(at).report_resources(at, report); });
}

}  // namespace rt::sim
