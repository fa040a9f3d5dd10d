#include "daemons/node_manager/core/node_core.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {
namespace {
constexpr int64_t kTickUs = 20'000;
}  // namespace

NodeCore::NodeCore(NodeSink& sink, const Settings& settings, const NodeIdentity& identity)
    : sink_(sink),
      settings_(settings),
      me_(identity),
      rooms_(Room(identity.total,
                  GpuPool(static_cast<int>((identity.total.units("GPU") + ResourceSet::kUnit - 1) /
                                           ResourceSet::kUnit),
                          identity.gpu_names))),
      cluster_(identity.id, identity.labels, identity.total),
      job_holds_(me_, rooms_),
      work_ends_({me_, workers_, actors_, leases_, bundle_desk_}),
      workers_({work_ends_, sink_, settings_, me_, rooms_, counters_}),
      actors_({sink_, settings_, me_, rooms_, bundle_line_, workers_.pool(), workers_.starts()}),
      leases_({sink_, settings_, rooms_, bundle_line_, cluster_, workers_, actors_, finished_jobs_,
               counters_}),
      bundle_desk_({sink_, settings_, me_, rooms_, bundle_line_, workers_, actors_}),
      view_({settings_, me_, rooms_, bundle_line_, cluster_, workers_, actors_, leases_, job_holds_,
             drain_, counters_}) {}

void NodeCore::start(Now now) {
  const Event event(*this, now);
  started_ = true;
  pump(now);
}

void NodeCore::pump(Now now) {
  if (stopping_) return;
  // A node at which nothing waits has no ticks.
  cluster_.expire(now);
  workers_.starts().begin_pass();
  bundle_desk_.serve_line(now);
  actors_.place(now);
  leases_.serve(started_, now);
  if (started_) workers_.start_needed(drain_.has_value(), now);
  if (rooms_.version() == announced_version_) return;
  announced_version_ = rooms_.version();
  sink_.resources_changed();
}

void NodeCore::tick(Now now) {
  const Event event(*this, now);
  tick_at_us_ = -1;
  workers_.reap_overdue(now);
  if (stopping_) return;
  leases_.flag_infeasible(now);
  leases_.revoke_for_waiting(now);
  for (const ActorId& id : actors_.waiting()) {
    const HostedActor& actor = actors_.at(id);
    if (actor.state == HostedActor::State::kWaitingWorker)
      workers_.warn_of_bound(actor.kind, actor.job, actor.request.spec().class_name(),
                             actor.since_us, now);
  }
  leases_.warn_of_bounds(now);
  workers_.retire_idle(now);
  pump(now);
}

bool NodeCore::needs_ticks() const {
  return !leases_.queue().nobody_waits() || !actors_.waiting().empty() || !bundle_line_.empty() ||
         workers_.needs_ticks(started_);
}

void NodeCore::end_event(Now now) {
  if (tick_at_us_ < 0 && !needs_ticks()) return;
  const int64_t paused_until = workers_.starts().paused_until_us();
  const int64_t wait_us =
      paused_until < 0 ? kTickUs : std::clamp<int64_t>(paused_until - now.steady_us, 0, kTickUs);
  const int64_t due_us = now.steady_us + wait_us;
  // A pause that has begun since may end before.
  tick_at_us_ = tick_at_us_ < 0 ? due_us : std::min(tick_at_us_, due_us);
}

// ---- owners

void NodeCore::set_demand(OwnerId owner, const WorkerId& process, const proto::LeaseDemand& demand,
                          Now now) {
  const Event event(*this, now);
  const Leases::Taken taken = leases_.set_demand(owner, process, demand, now);
  if (taken == Leases::Taken::kNo) return;
  pump(now);
  if (taken == Leases::Taken::kChanged) sink_.resources_changed();
}

void NodeCore::return_lease(OwnerId owner, const proto::LeaseReturn& request, Now now) {
  const Event event(*this, now);
  if (leases_.take_back(owner, request, now)) pump(now);
}

void NodeCore::owner_closed(OwnerId owner, Now now) {
  const Event event(*this, now);
  leases_.owner_closed(owner, now);
  pump(now);
  sink_.resources_changed();
}

// ---- bundles of placement groups

void NodeCore::prepare_bundles(const proto::PrepareBundlesRequest& request, Now now) {
  const Event event(*this, now);
  if (bundle_desk_.prepare(request, stopping_ || drain_, now)) pump(now);
}

void NodeCore::return_bundles(const proto::ReturnBundlesRequest& request, Now now) {
  const Event event(*this, now);
  if (!bundle_desk_.give_back(request, now)) return;
  pump(now);
  sink_.resources_changed();
}

void NodeCore::head_lost(Now now) {
  const Event event(*this, now);
  bundle_desk_.drop_waiting();
  pump(now);
}

// ---- other nodes

void NodeCore::node_changed(const proto::Node& node) { cluster_.update(node); }

void NodeCore::nodes_settled(Now now) {
  const Event event(*this, now);
  pump(now);
}

Result<std::vector<std::string>> NodeCore::hold_for_job(const std::string& submission_id,
                                                        const ResourceSet& resources, Now now) {
  const Event event(*this, now);
  if (drain_)
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} is leaving the cluster", me_.ip));
  auto gpus = job_holds_.hold(submission_id, resources);
  if (gpus) pump(now);
  return gpus;
}

void NodeCore::release_job(const std::string& submission_id, Now now) {
  const Event event(*this, now);
  if (job_holds_.release(submission_id)) pump(now);
}

}  // namespace rt::node
