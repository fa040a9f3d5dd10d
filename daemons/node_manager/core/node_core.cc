#include "daemons/node_manager/core/node_core.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "daemons/node_manager/core/runtime_env.h"

namespace rt::node {
namespace {
constexpr int64_t kTickUs = 20'000;
constexpr int64_t kReapGraceUs = 2'000'000;     // from SIGKILL until a process counts as lost
constexpr int64_t kDismissGraceUs = 1'000'000;  // time for user code to clean up
constexpr int64_t kKillGraceUs = 250'000;       // time to send the recorded task events

// Returns a phrase for people: what the demand waits for, or an empty one if that is resources that
// are in use.
std::string obstacle_of(const Demand& demand, const WorkerStarts& starts) {
  switch (demand.lacks) {
    case Demand::Lacks::kResources: break;
    case Demand::Lacks::kWorker: return starts.describe(demand.kind);
    case Demand::Lacks::kTurn:
      return "others that have waited longer: what it needs is free, but is kept for them";
  }
  return "";
}

}  // namespace

NodeCore::NodeCore(NodeSink& sink, const Settings& settings, const NodeIdentity& identity)
    : sink_(sink),
      settings_(settings),
      me_(identity),
      resources_(identity.total),
      gpus_(static_cast<int>((identity.total.units("GPU") + ResourceSet::kUnit - 1) /
                             ResourceSet::kUnit),
            identity.gpu_names),
      view_(identity.id, identity.labels, identity.total),
      pool_(identity.seed),
      starts_(settings, pool_) {}

void NodeCore::start(Now now) {
  started_ = true;
  pump(now);
}

void NodeCore::pump(Now now) {
  if (stopping_) return;
  starts_.begin_pass();
  place_actors(now);
  serve_leases(now);
  start_workers(now);
  if (resources_.version() == announced_version_) return;
  announced_version_ = resources_.version();
  sink_.resources_changed();
}

void NodeCore::tick(Now now) {
  view_.expire(now.steady_us);
  reap_overdue(now);
  if (stopping_) return;
  flag_infeasible(now);
  revoke_for_waiting(now);
  warn_of_bounds(now);
  retire_idle(now);
  pump(now);
}

int64_t NodeCore::next_tick_us(Now now) const {
  int surplus = pool_.pooled() - starts_.warm(resources_.total().get("CPU"));
  bool busy = !queue_.nobody_waits() || !waiting_actors_.empty() ||
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
    const int64_t grace =
        worker->intent.kind() == proto::ExitInfo::KILLED_BY_USER ? kKillGraceUs : kDismissGraceUs;
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
  if (draining_)
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} is leaving the cluster", me_.ip));
  if (job_holds_.contains(submission_id))
    return make_error(Code::kAlreadyExists,
                      fmt::format("job {} is running already", submission_id));
  if (!resources_.fits(resources) || (!gpus_.empty() && !gpus_.fits(resources.units("GPU")))) {
    return make_error(Code::kResourceExhausted,
                      fmt::format("node {} has no free {}", me_.ip, resources.to_string()));
  }
  JobHold& hold = job_holds_[submission_id];
  hold.resources = resources;
  resources_.acquire(resources);
  if (!gpus_.empty()) hold.gpus = gpus_.take(resources.units("GPU"));
  std::vector<std::string> gpus = gpus_.names(hold.gpus);
  pump(now);
  return gpus;
}

void NodeCore::release_job(const std::string& submission_id, Now now) {
  auto hold = job_holds_.extract(submission_id);
  if (hold.empty()) return;
  resources_.release(hold.mapped().resources);
  gpus_.give_back(hold.mapped().gpus);
  pump(now);
}

void NodeCore::count_grant(int64_t waited_us) {
  double waited_ms = static_cast<double>(std::max<int64_t>(0, waited_us)) / 1000;
  if (counters_.lease_wait_size() == 0)
    counters_.mutable_lease_wait()->Resize(static_cast<int>(std::size(kLeaseWaitBoundsMs)) + 1, 0);
  auto bucket =
      std::lower_bound(std::begin(kLeaseWaitBoundsMs), std::end(kLeaseWaitBoundsMs), waited_ms) -
      std::begin(kLeaseWaitBoundsMs);
  int64_t& count = *counters_.mutable_lease_wait()->Mutable(static_cast<int>(bucket));
  ++count;
  counters_.set_lease_wait_ms(counters_.lease_wait_ms() + waited_ms);
  counters_.set_leases_granted(counters_.leases_granted() + 1);
}

std::pair<int64_t, int64_t> NodeCore::waiting_tasks() const {
  int64_t waiting = 0, infeasible = 0;
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.want > 0)
      (demand.infeasible.since_us >= 0 ? infeasible : waiting) +=
          std::max<int64_t>(demand.want, demand.backlog);
  }
  return {waiting, infeasible};
}

void NodeCore::fill_report(proto::ResourceReport* report) const {
  report->set_node_id(me_.id.binary());
  report->set_incarnation(resources_.version());
  report->set_draining(draining_);
  auto& available = *report->mutable_available()->mutable_units();
  // Resources of actors that are starting are reported as free. The head accounts for them itself
  // from the moment it chooses this node, and would otherwise subtract them twice.
  ResourceSet free = resources_.available();
  for (const auto& [id, actor] : actors_) {
    if (actor.state == HostedActor::State::kWaitingWorker) free.add(actor.placement);
    const Worker* worker =
        actor.state == HostedActor::State::kStarting ? pool_.find(actor.worker) : nullptr;
    if (worker && worker->state == WorkerState::kActor) free.add(releasable_resources(*worker));
  }
  for (const auto& [name, units] : free.all()) {
    if (units > 0 && !draining_) available[name] = units;
  }
  std::map<std::tuple<ResourceSet, bool, std::string, std::string>, proto::Demand> merged;
  auto add = [&](const ResourceSet& resources, bool infeasible, int64_t count,
                 const std::string& what, std::string waits_for, std::string where) {
    auto key = std::tuple(resources, infeasible, std::move(waits_for), std::move(where));
    auto found = merged.find(key);
    if (found == merged.end()) {
      if (static_cast<int64_t>(merged.size()) >= settings_.demands_per_node)
        return report->set_demands_left_out(report->demands_left_out() + count);
      proto::Demand demand;
      resources.to_proto(demand.mutable_resources());
      demand.set_infeasible(infeasible);
      demand.set_what(what);
      demand.set_waits_for(std::get<2>(key));
      demand.set_where(std::get<3>(key));
      found = merged.emplace(std::move(key), std::move(demand)).first;
    }
    found->second.set_count(found->second.count() + count);
  };
  for (const auto& [key, demand] : queue_.all()) {
    // The head is told how many tasks wait; `want` alone is only how many workers would do.
    if (demand.want > 0)
      add(demand.resources, demand.infeasible.since_us >= 0,
          std::max<int64_t>(demand.want, demand.backlog), demand.what, obstacle_of(demand, starts_),
          scheduling::where_of(demand.constraint.get()));
  }
  // Many equal actors may wait in a row, and are added together.
  const HostedActor* first = nullptr;
  int64_t in_a_row = 0;
  auto add_row = [&] {
    if (first)
      add(first->placement, false, in_a_row, first->request.spec().class_name(),
          first->state == HostedActor::State::kWaitingWorker ? starts_.describe(first->kind) : "",
          "");
  };
  for (const ActorId& id : waiting_actors_) {
    const HostedActor& actor = actors_.at(id);
    if (!first || actor.state != first->state || actor.kind != first->kind ||
        !(actor.placement == first->placement)) {
      add_row();
      first = &actor;
      in_a_row = 0;
    }
    ++in_a_row;
  }
  add_row();
  for (auto& [key, demand] : merged) *report->add_demands() = std::move(demand);
}

void NodeCore::check_invariants() const {
  pool_.check_invariants();
  queue_.check_invariants();
  // Available and held resources add up to the total.
  ResourceSet sum = resources_.available();
  int64_t gpu_units = 0;
  auto count_gpus = [&](const GpuShare& share) {
    for (const auto& [device, units] : share) gpu_units += units;
  };
  for (const auto& [id, hold] : job_holds_) {
    sum.add(hold.resources);
    count_gpus(hold.gpus);
  }
  for (const auto& [id, worker] : pool_.all()) {
    count_gpus(worker->gpus);
    ResourceSet held = releasable_resources(*worker);
    sum.add(held);
    if (worker->state == WorkerState::kLeased) {
      auto it = queue_.leases().find(worker->lease);
      RT_CHECK(it != queue_.leases().end() && it->second.worker == id);
    }
    if (worker->state == WorkerState::kActor) {
      auto it = actors_.find(worker->actor);
      RT_CHECK(it != actors_.end() && it->second.worker == id);
    }
  }
  std::set<ActorId> waiting(waiting_actors_.begin(), waiting_actors_.end());
  RT_CHECK(waiting.size() == waiting_actors_.size());
  for (const auto& [id, actor] : actors_) {
    bool waits = actor.state == HostedActor::State::kWaitingResources ||
                 actor.state == HostedActor::State::kWaitingWorker;
    RT_CHECK(waits == waiting.contains(id));
    count_gpus(actor.gpus);
    if (actor.state == HostedActor::State::kWaitingWorker) sum.add(actor.placement);
    if (!waits) {
      const Worker* worker = pool_.find(actor.worker);
      bool dying =
          worker && worker->state == WorkerState::kDying && dying_actors_.contains(worker->id);
      RT_CHECK(worker && (dying || (worker->state == WorkerState::kActor && worker->actor == id)));
    }
  }
  RT_CHECK(gpu_units == gpus_.taken());
  RT_CHECK(sum == resources_.total());
  for (const auto& [id, lease] : queue_.leases()) {
    const Worker* worker = pool_.find(lease.worker);
    RT_CHECK(worker && worker->state == WorkerState::kLeased && worker->lease == id);
  }
  RT_CHECK(exits_.size() == exit_order_.size());
}

}  // namespace rt::node
