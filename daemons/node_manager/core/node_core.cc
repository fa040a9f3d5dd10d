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
constexpr int64_t kReapGraceUs = 2'000'000;     // from SIGKILL until a process counts as lost
constexpr int64_t kDismissGraceUs = 1'000'000;  // time for user code to clean up
constexpr int64_t kKillGraceUs = 250'000;       // time to send the recorded task events
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
      pool_(identity.seed),
      starts_(settings, pool_),
      actors_({sink_, settings_, me_, rooms_, bundle_line_, pool_, starts_}) {}

void NodeCore::start(Now now) {
  started_ = true;
  pump(now);
}

void NodeCore::pump(Now now) {
  if (stopping_) return;
  // A node at which nothing waits has no ticks.
  view_.expire(now.steady_us);
  starts_.begin_pass();
  BundleDesk(*this, now).serve_line();
  actors_.place(now);
  if (!queue_.nobody_waits()) Round(*this, now).run();
  start_workers(now);
  if (rooms_.version() == announced_version_) return;
  announced_version_ = rooms_.version();
  sink_.resources_changed();
}

void NodeCore::tick(Now now) {
  reap_overdue(now);
  if (stopping_) return;
  flag_infeasible(now);
  Revocation(*this, now).run();
  warn_of_bounds(now);
  retire_idle(now);
  pump(now);
}

int64_t NodeCore::next_tick_us(Now now) const {
  int surplus = pool_.pooled() - starts_.warm(resources().total().get("CPU"));
  bool busy = !queue_.nobody_waits() || !actors_.waiting().empty() || !bundle_line_.empty() ||
              pool_.count(WorkerState::kStarting) > 0 ||
              (surplus > 0 && pool_.count(WorkerState::kIdle) > 0);
  if (!busy) {
    for (const auto& [id, worker] : pool_.all())
      busy |= worker->leave_by_us > 0 ||
              (worker->state == WorkerState::kDying && (worker->forced || worker->dismissed));
  }
  // Fewer workers than prestart_workers: a start has failed and is retried after its back-off.
  if (!busy && started_ && surplus < 0) busy = true;
  if (!busy) return -1;
  const int64_t paused_until = starts_.paused_until_us();
  return now.steady_us + (paused_until < 0
                              ? kTickUs
                              : std::clamp<int64_t>(paused_until - now.steady_us, 0, kTickUs));
}

// Ends processes that should have registered by now, and kills or gives up on those that should
// have exited.
void NodeCore::reap_overdue(Now now) {
  std::vector<WorkerId> late, lost, stubborn, stays;
  for (const auto& [id, worker] : pool_.all()) {
    int64_t age = now.steady_us - worker->since_us;
    if (worker->state == WorkerState::kStarting &&
        age > settings_.worker_register_timeout_ms * 1000) {
      // A worker that makes a runtime environment first has more time. It reports itself when the
      // environment's own time-out has passed (worker_setup_failed()).
      int64_t more =
          worker->kind.runtime_env.empty() ? 0 : setup_timeout_us(worker->kind.runtime_env);
      if (more >= 0 && age > settings_.worker_register_timeout_ms * 1000 + more) late.push_back(id);
    }
    if (worker->state == WorkerState::kDying && worker->forced && age > kReapGraceUs)
      lost.push_back(id);
    const bool soon = worker->intent.kind() == proto::ExitInfo::KILLED_BY_USER ||
                      worker->intent.kind() == proto::ExitInfo::GROUP_REMOVED;
    const int64_t grace = soon ? kKillGraceUs : kDismissGraceUs;
    if (worker->state == WorkerState::kDying && worker->dismissed && !worker->forced && age > grace)
      stubborn.push_back(id);
    if (worker->leave_by_us > 0 && now.steady_us >= worker->leave_by_us) stays.push_back(id);
  }
  for (const WorkerId& id : stays) {
    Worker& worker = *pool_.find(id);
    worker.leave_by_us = 0;
    worker.intent.set_message(fmt::format(
        "{}; its process did not end within {} ms (worker_exit_timeout_ms) and was killed",
        worker.intent.message(), settings_.worker_exit_timeout_ms));
    end_worker(worker, worker.intent.kind(), worker.intent.message(), now);
  }
  for (const WorkerId& id : stubborn) {
    Worker& worker = *pool_.find(id);
    end_worker(worker, worker.intent.kind(), worker.intent.message(), now);
  }
  for (const WorkerId& id : late) {
    Worker& worker = *pool_.find(id);
    end_worker(worker, proto::ExitInfo::UNKNOWN,
               "it did not register with the node-manager in time", now);
  }
  for (const WorkerId& id : lost) {
    Worker& worker = *pool_.find(id);
    finish(worker, ProcessEnd{}, now);
  }
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
