#include "daemons/node_manager/core/node_core.h"

#include <fmt/core.h>

#include <algorithm>

#include "daemons/node_manager/core/bundle_desk.h"
#include "daemons/node_manager/core/lease_round.h"
#include "daemons/node_manager/core/revocation.h"
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
      view_(identity.id, identity.labels, identity.total),
      workers_({*this, sink_, settings_, me_, counters_}),
      actors_({sink_, settings_, me_, rooms_, bundle_line_, workers_.pool(), workers_.starts()}) {}

void NodeCore::start(Now now) {
  started_ = true;
  pump(now);
}

void NodeCore::pump(Now now) {
  if (stopping_) return;
  // A node at which nothing waits has no ticks.
  view_.expire(now.steady_us);
  workers_.starts().begin_pass();
  BundleDesk(*this, now).serve_line();
  actors_.place(now);
  if (!queue_.nobody_waits()) Round(*this, now).run();
  if (started_) workers_.start_needed(drain_.has_value(), now);
  if (rooms_.version() == announced_version_) return;
  announced_version_ = rooms_.version();
  sink_.resources_changed();
}

void NodeCore::tick(Now now) {
  workers_.reap_overdue(now);
  if (stopping_) return;
  flag_infeasible(now);
  Revocation(*this, now).run();
  warn_of_bounds(now);
  workers_.retire_idle(now);
  pump(now);
}

int64_t NodeCore::next_tick_us(Now now) const {
  if (queue_.nobody_waits() && actors_.waiting().empty() && bundle_line_.empty() &&
      !workers_.needs_ticks(started_))
    return -1;
  const int64_t paused_until = workers_.starts().paused_until_us();
  return now.steady_us + (paused_until < 0
                              ? kTickUs
                              : std::clamp<int64_t>(paused_until - now.steady_us, 0, kTickUs));
}

void NodeCore::node_changed(const proto::Node& node) { view_.update(node); }

void NodeCore::nodes_settled(Now now) { pump(now); }

Result<std::vector<std::string>> NodeCore::hold_for_job(const std::string& submission_id,
                                                        const ResourceSet& resources, Now now) {
  if (drain_)
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} is leaving the cluster", me_.ip));
  if (job_holds_.contains(submission_id))
    return make_error(Code::kAlreadyExists,
                      fmt::format("job {} is running already", submission_id));
  if (!rooms_.node().fits(resources)) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} has no free {}", me_.ip, resources.to_string()));
  }
  JobHold& hold = job_holds_[submission_id];
  hold.resources = resources;
  hold.gpus = rooms_.change(RoomKey()).take(resources);
  std::vector<std::string> gpus = rooms_.node().gpus().names(hold.gpus);
  pump(now);
  return gpus;
}

void NodeCore::release_job(const std::string& submission_id, Now now) {
  auto hold = job_holds_.extract(submission_id);
  if (hold.empty()) return;
  rooms_.change(RoomKey()).give_back(hold.mapped().resources, hold.mapped().gpus);
  pump(now);
}

}  // namespace rt::node
