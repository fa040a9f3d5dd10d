// SimNode: the link to the head, which registers, reconnects and gives up like
// daemons/node_manager/service/head_link.h.
#include <algorithm>

#include "daemons/node_manager/core/registration.h"
#include "tests/sim/sim_head.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/sim_owner.h"

namespace rt::sim {
namespace {
constexpr int64_t kFirstPauseUs = 20'000, kMaxPauseUs = 1'000'000, kCallTimeoutUs = 30'000'000;
}

template <class Request>
void SimNode::report_reliably(const char* what,
                              void (*deliver)(Channel&, const Request&, Answer<proto::Empty>),
                              const Request& request) {
  send_reliably([what, deliver, request](Channel& channel, std::function<void(bool)> done) {
    channel.call<proto::Empty>(
        what,
        [deliver, request](Channel& at, Answer<proto::Empty> answer) {
          deliver(at, request, std::move(answer));
        },
        [done](Result<proto::Empty> reply) {
          done(reply ||
               (reply.error().code != Code::kUnavailable && reply.error().code != Code::kTimeout));
        },
        kCallTimeoutUs);
  });
}
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::FinishJobRequest&,
                                                Answer<proto::Empty>),
                                       const proto::FinishJobRequest&);
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::ActorStarted&,
                                                Answer<proto::Empty>),
                                       const proto::ActorStarted&);
template void SimNode::report_reliably(const char*,
                                       void (*)(Channel&, const proto::ActorDied&,
                                                Answer<proto::Empty>),
                                       const proto::ActorDied&);

void SimNode::connect_head() {
  network_.connect(
      *this, kHeadHost, "node connects", [this] { return listening_head(world_); },
      [this](Result<ChannelPtr> channel) {
        if (!channel) return retry_head(channel.error());
        head_ = *channel;
        head_->on_closed = [this] { head_lost(); };
        proto::RegisterNodeRequest request;
        fill_registration(&request);
        head_->call<proto::RegisterNodeReply>(
            "register node",
            [request](Channel& at, Answer<proto::RegisterNodeReply> answer) {
              head_at(at).register_node(at, request, std::move(answer));
            },
            [this, current = head_.get()](Result<proto::RegisterNodeReply> reply) {
              if (head_.get() != current) return;
              if (reply) {
                on_registered(*reply);
              } else if (reply.error().code == Code::kUnavailable ||
                         reply.error().code == Code::kTimeout) {
                head_->close();
              } else {
                leave(Exit::kOrderly);  // the head refuses this node
              }
            },
            world_.settings.connect_timeout_ms * 1000);
      });
}

void SimNode::retry_head(const Error&) {
  int64_t limit_ms = ever_registered_ ? world_.settings.head_reconnect_timeout_ms
                                      : world_.settings.connect_timeout_ms;
  if (clock_.now_us() - head_lost_us_ > limit_ms * 1000) return leave(Exit::kOrderly);
  pause_us_ = pause_us_ == 0 ? kFirstPauseUs : std::min(kMaxPauseUs, pause_us_ * 2);
  after(pause_us_, "head again", [this] { connect_head(); });
}

void SimNode::head_lost() {
  head_.reset();
  if (std::exchange(registered_, false)) head_lost_us_ = clock_.now_us();
  drive([](node::NodeCore& core, Now now) { core.head_lost(now); });
  retry_head(make_error(Code::kUnavailable, "lost"));
}

void SimNode::fill_registration(proto::RegisterNodeRequest* request) const {
  proto::ResourceReport report;
  core_.fill_report(&report);
  node::fill_node(core_, report, request->mutable_node());
  request->mutable_node()->set_is_head(is_head_node_);
  node::fill_holdings(core_, request);
  for (const auto& [id, job] : driver_jobs_) *request->add_live_jobs() = job;
}

void SimNode::on_registered(const proto::RegisterNodeReply& reply) {
  registered_ = ever_registered_ = true;
  pause_us_ = 0;
  nodes_changed(membership_.since_registration(reply.nodes()), true);
  for (const std::string& id : reply.dead_jobs()) job_finished(JobId::from_binary(id));
  send_report();
  pace_.begin_heartbeats(clock_.now());
  arm_report();
  for (auto& waiting : std::exchange(when_registered_, {})) waiting();
  send_pending();
}

void SimNode::on_head_event(const proto::HeadEvent& event) {
  if (event.nodes_size() > 0) nodes_changed(event.nodes(), true);
  for (const std::string& id : event.finished_jobs()) {
    if (alive()) job_finished(JobId::from_binary(id));
  }
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
  if (!registered_) return;
  proto::ResourceReport report;
  core_.fill_report(&report);
  head_->send("report", [report](Channel& at) { head_at(at).report_resources(at, report); });
}

void SimNode::send_reliably(SendToHead send) {
  pending_.push_back(std::move(send));
  send_pending();
}

void SimNode::send_pending() {
  while (registered_ && head_ && head_->open() && !pending_.empty()) {
    SendToHead send = std::move(pending_.front());
    pending_.pop_front();
    send(*head_, [this, send](bool delivered) {
      if (!delivered) pending_.push_back(send);
    });
  }
}

}  // namespace rt::sim
