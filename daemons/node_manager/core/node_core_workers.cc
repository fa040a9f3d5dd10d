// NodeCore: processes from start to exit.
#include <fmt/core.h>

#include <algorithm>

#include "common/base/utf8.h"
#include "daemons/node_manager/core/bundle_desk.h"
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {
proto::WorkerAddress NodeCore::address_of(const Worker& worker) const {
  proto::WorkerAddress address;
  address.set_node_id(me_.id.binary());
  address.set_worker_id(worker.id.binary());
  address.set_ip(me_.ip);
  address.set_port(me_.port);
  address.set_socket_path(worker.socket_path);
  return address;
}

void NodeCore::start_workers(Now now) {
  if (!started_ || stopping_) return;
  for (const auto& [kind, needed] : starts_.needs()) {
    for (int missing = needed.all() - pool_.starting(kind); missing > 0; --missing) {
      if (!start_one(kind, now)) break;
    }
  }
  const int warm = starts_.warm(resources().total().get("CPU"));
  while (!drain_ && pool_.pooled() < warm) {
    if (!start_one(WorkerKind{}, now)) break;
  }
}

bool NodeCore::start_one(const WorkerKind& kind, Now now) {
  WorkerStarts::Hold hold = starts_.ask(kind, now);
  if (Worker* idle = hold == WorkerStarts::Hold::kMaxWorkers ? pool_.longest_idle() : nullptr) {
    retire(*idle, "it was idle and the node had reached max_workers", now);
    hold = starts_.ask(kind, now);
  }
  if (hold != WorkerStarts::Hold::kNone) return false;
  starts_.started(now);
  Worker& worker = pool_.add_starting(kind, now.steady_us);
  worker.start_wall_us = now.wall_us;
  sink_.spawn_worker(worker.id, kind);
  return true;
}

void NodeCore::warn_of_bounds(Now now) {
  auto tell = [&](const WorkerKind& kind, JobId job, const std::string& what, int64_t since_us) {
    std::string text = starts_.warning(kind, job, what, since_us, now);
    if (text.empty()) return;
    proto::LeaseNotice notice;
    notice.set_job_id(job.binary());
    notice.set_message(printable(text));
    sink_.notice(0, notice);
  };
  for (const ActorId& id : actors_.waiting()) {
    const HostedActor& actor = actors_.at(id);
    if (actor.state == HostedActor::State::kWaitingWorker)
      tell(actor.kind, actor.job, actor.request.spec().class_name(), actor.since_us);
  }
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.want > 0 && demand.lacks == Demand::Lacks::kWorker)
      tell(demand.kind, demand.job, demand.what, demand.waiting_since_us);
  }
}

void NodeCore::worker_spawned(const WorkerId& id, int pid, Now) {
  counters_.set_workers_started(counters_.workers_started() + 1);
  if (Worker* worker = pool_.find(id)) worker->pid = pid;
}

void NodeCore::worker_start_failed(const WorkerId& id, const std::string& why, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker) return;
  bool starting = worker->state == WorkerState::kStarting;
  WorkerKind kind = worker->kind;
  if (starting) note_runtime_env(*worker, why, now);
  if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
  pool_.remove(id);
  counters_.set_worker_starts_failed(counters_.worker_starts_failed() + 1);
  if (starting) record_start_failure(kind, why, now);
  pump(now);
}

void NodeCore::note_runtime_env(const Worker& worker, const std::string& error, Now now) {
  if (worker.kind.runtime_env.empty()) return;
  std::set<std::string> in_use;
  for (const auto& [runtime_env, count] : workers_by_env()) in_use.insert(runtime_env);
  runtime_envs_.record(worker.kind.runtime_env, error, now.steady_us - worker.since_us, in_use);
}

std::map<std::string, int> NodeCore::workers_by_env() const {
  std::map<std::string, int> workers;
  for (const auto& [id, worker] : pool_.all()) {
    if (!worker->kind.runtime_env.empty() && worker->state != WorkerState::kDying)
      ++workers[worker->kind.runtime_env];
  }
  return workers;
}

void NodeCore::record_start_failure(const WorkerKind& kind, const std::string& why, Now now) {
  if (!starts_.failed(kind, why, now)) return;
  give_up_on(kind, fmt::format("no worker process can be started on node {}: {}", me_.ip, why),
             kind.runtime_env.empty() ? Code::kInternal : Code::kRuntimeEnvSetup, now);
}

// Fails all demands and actors that wait for a worker of `kind`. A later demand tries again.
void NodeCore::give_up_on(const WorkerKind& kind, const std::string& message, Code code, Now now) {
  std::vector<LeaseQueue::Key> waiting;
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.want > 0 && demand.kind == kind) waiting.push_back(key);
  }
  for (const auto& [owner, class_id] : waiting) {
    Demand& demand = *queue_.find(owner, class_id);
    queue_.set_want(demand, 0, now.steady_us);
    queue_.erase_if_unused(demand);
    refuse(owner, class_id, message, code);
  }
  proto::ExitInfo info;
  info.set_message(message);
  info.set_node_id(me_.id.binary());
  info.set_ip(me_.ip);
  if (code == Code::kRuntimeEnvSetup) {
    // The head must not try again, just as after a constructor that raised an exception: another
    // attempt would end the same way.
    info.set_kind(proto::ExitInfo::INIT_FAILED);
    info.set_exit_code(static_cast<int>(code));
  }
  actors_.fail_waiting([&](const HostedActor& actor) { return actor.kind == kind; }, info, false);
}

void NodeCore::worker_setup_failed(const WorkerId& id, const std::string& why, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker || worker->state != WorkerState::kStarting || worker->kind.runtime_env.empty())
    return;
  WorkerKind kind = worker->kind;
  note_runtime_env(*worker, why, now);
  end_worker(*worker, proto::ExitInfo::INIT_FAILED, "its runtime environment could not be made",
             now);
  give_up_on(kind, fmt::format("{} (on node {})", why, me_.ip), Code::kRuntimeEnvSetup, now);
  pump(now);
}

Status NodeCore::worker_registered(const WorkerId& id, int pid, const std::string& socket_path,
                                   Now now) {
  Worker* worker = pool_.find(id);
  if (!worker)
    return make_error(Code::kNotFound, "this node-manager did not start a worker with this id");
  if (worker->state != WorkerState::kStarting) {
    return make_error(Code::kInvalid, fmt::format("worker {} cannot register: it is {}", id.hex(),
                                                  state_name(worker->state)));
  }
  worker->pid = pid;
  worker->socket_path = socket_path;
  worker->connected = true;
  starts_.succeeded(worker->kind);
  note_runtime_env(*worker, "", now);
  pool_.set_state(*worker, WorkerState::kIdle, now.steady_us);
  pump(now);
  return {};
}

Status NodeCore::add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                            Now now) {
  if (job.is_nil()) return make_error(Code::kInvalid, "a driver needs a job id");
  if (pool_.find(id))
    return make_error(Code::kAlreadyExists,
                      fmt::format("driver {} is connected already", id.hex()));
  Worker& driver = pool_.add_driver(id, job, now.steady_us);
  driver.start_wall_us = now.wall_us;
  driver.pid = pid;
  driver.socket_path = socket_path;
  pump(now);
  return {};
}

void NodeCore::release_held(Worker& worker) {
  rooms_.change(worker.room)
      .give_back(releasable_resources(worker), std::exchange(worker.gpus, {}));
  worker.held = ResourceSet();
  pool_.set_blocked(worker, false);
}

void NodeCore::begin_dying(Worker& worker, Now now) {
  if (worker.state == WorkerState::kLeased) {
    end_lease(worker.lease, false, now);
  } else if (worker.state == WorkerState::kActor) {
    release_held(worker);
    actors_.begin_end(worker);
  }
  pool_.set_state(worker, WorkerState::kDying, now.steady_us);
}

void NodeCore::end_worker(Worker& worker, proto::ExitInfo::Kind why, const std::string& message,
                          Now now) {
  if (worker.state == WorkerState::kDriver) return;  // the node-manager did not start it
  WorkerState before = worker.state;
  if (before == WorkerState::kStarting && why == proto::ExitInfo::UNKNOWN)
    note_runtime_env(worker, message, now);
  if (before != WorkerState::kDying) begin_dying(worker, now);
  // Overrides a graceful request that the worker has not followed yet; a worker that is dying
  // already keeps its first reason.
  if (before != WorkerState::kDying || worker.intent.message().empty()) {
    worker.intent.set_kind(why);
    worker.intent.set_message(message);
  }
  if (before == WorkerState::kStarting && why == proto::ExitInfo::UNKNOWN)
    record_start_failure(worker.kind, message, now);
  if (!worker.forced) worker.since_us = now.steady_us;
  worker.forced = true;
  sink_.kill_worker(worker.id);
}

// Ends a worker whose work is of no use any more. The worker is asked to exit at once by itself,
// so that it can send the task events it has recorded; reap_overdue() kills it if it does not.
void NodeCore::dismiss_worker(Worker& worker, proto::ExitInfo::Kind why, const std::string& message,
                              Now now) {
  // There may be several reasons in a row: its owner ends, then its job finishes.
  if (worker.dismissed && worker.state == WorkerState::kDying) return;
  bool can_hear = worker.connected && worker.state != WorkerState::kStarting &&
                  worker.state != WorkerState::kDying && worker.state != WorkerState::kDriver;
  if (!can_hear) return end_worker(worker, why, message, now);
  begin_dying(worker, now);
  worker.since_us = now.steady_us;
  worker.dismissed = true;
  worker.intent.set_kind(why);
  worker.intent.set_message(message);
  proto::KillWorkerRequest request;
  request.set_worker_id(worker.id.binary());
  request.set_why(why);
  request.set_message(message);
  sink_.ask_exit(worker.id, request);
}

void NodeCore::worker_disconnected(const WorkerId& id, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker) return;
  worker->connected = false;
  if (worker->state == WorkerState::kDriver) {
    proto::ProcessInfo process = describe(*worker, ActorId::nil());
    pool_.set_state(*worker, WorkerState::kDying, now.steady_us);
    const proto::ExitInfo info = describe_end_of_driver(me_, *worker);
    pool_.remove(id);
    exits_.add(std::move(process), info, now);
    sink_.worker_died(id, info);
    return;
  }
  // A worker without its connection must not go on, so it is killed. If it was exiting by itself,
  // its exit status says why.
  if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
  worker->forced = true;
  worker->since_us = now.steady_us;
  sink_.kill_worker(id);
  pump(now);
}

void NodeCore::worker_exited(const WorkerId& id, const ProcessEnd& end, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker || worker->state == WorkerState::kDriver) return;
  if (worker->state == WorkerState::kStarting) {
    const proto::ExitInfo info = describe_end(me_, *worker, end);
    std::string why = "it ended before it had registered: " + info.message();
    if (!end.log_tail.empty()) why += "\nThe last lines of its log:\n" + end.log_tail;
    WorkerKind kind = worker->kind;
    note_runtime_env(*worker, why, now);
    begin_dying(*worker, now);
    finish(*worker, end, now);
    record_start_failure(kind, why, now);
  } else {
    if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
    finish(*worker, end, now);
  }
  pump(now);
}

void NodeCore::finish(Worker& worker, const ProcessEnd& end, Now now) {
  const proto::ExitInfo info = describe_end(me_, worker, end);
  proto::ProcessInfo process = describe(worker, actors_.in_process(worker));
  WorkerId id = worker.id;
  const RoomKey room = worker.room;
  pool_.remove(id);
  BundleDesk(*this, now).vacated(room);
  exits_.add(std::move(process), info, now);
  bool failed = info.kind() == proto::ExitInfo::SIGNALED ||
                info.kind() == proto::ExitInfo::UNKNOWN ||
                (info.kind() == proto::ExitInfo::EXITED && info.exit_code() != 0);
  if (failed) counters_.set_workers_failed(counters_.workers_failed() + 1);
  if (info.kind() == proto::ExitInfo::OUT_OF_MEMORY)
    counters_.set_out_of_memory_kills(counters_.out_of_memory_kills() + 1);
  actors_.ended(id, info);
  sink_.worker_died(id, info);
}

void NodeCore::fill_processes(proto::ProcessesReply* reply) const {
  for (const auto& [id, worker] : pool_.all())
    *reply->add_processes() = describe(*worker, actors_.in_process(*worker));
  exits_.fill(reply);
}

void NodeCore::set_blocked(const WorkerId& id, bool blocked, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker || worker->blocked == blocked) return;
  if (worker->state != WorkerState::kLeased && worker->state != WorkerState::kActor) return;
  ResourceSet cpu = cpu_part(worker->held);
  if (blocked) {
    rooms_.change(worker->room).lend(cpu);
  } else {
    rooms_.change(worker->room).take_back(cpu);
  }
  pool_.set_blocked(*worker, blocked);
  pump(now);
  sink_.resources_changed();
}

// Asks an idle worker to leave, rather than killing it: it may own objects that others still use.
void NodeCore::retire(Worker& idle, const std::string& why, Now now) {
  begin_dying(idle, now);
  idle.intent.set_kind(proto::ExitInfo::INTENTIONAL);
  idle.intent.set_message(why);
  proto::KillWorkerRequest request;
  request.set_worker_id(idle.id.binary());
  request.set_graceful(true);
  request.set_why(proto::ExitInfo::INTENTIONAL);
  request.set_message(why);
  ask_to_leave(idle, request, now);
}

void NodeCore::ask_to_leave(Worker& worker, const proto::KillWorkerRequest& request, Now now) {
  worker.leave_by_us = now.steady_us + settings_.worker_exit_timeout_ms * 1000;
  sink_.ask_exit(worker.id, request);
}

void NodeCore::worker_leaves(const WorkerId& id, Leaving stage, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker) return;
  worker->leave_by_us =
      stage == Leaving::kHasHeard ? 0 : now.steady_us + settings_.worker_exit_timeout_ms * 1000;
}

// Ends workers beyond prestart_workers that have been idle for idle_worker_timeout_ms.
void NodeCore::retire_idle(Now now) {
  const int warm = starts_.warm(resources().total().get("CPU"));
  while (pool_.pooled() > warm) {
    Worker* idle = pool_.longest_idle();
    if (!idle || now.steady_us - idle->since_us < settings_.idle_worker_timeout_ms * 1000) return;
    retire(*idle, "it was idle and not needed any more", now);
  }
}

void NodeCore::job_finished(JobId job, Now now) {
  if (job.is_nil() || !finished_jobs_.add(job)) return;
  starts_.forget(job);
  std::vector<LeaseQueue::Key> demands;
  for (const auto& [key, demand] : queue_.all()) {
    if (demand.job == job && !demand.outlives_job && demand.want > 0) demands.push_back(key);
  }
  for (const auto& [owner, class_id] : demands) {
    Demand& demand = *queue_.find(owner, class_id);
    queue_.set_want(demand, 0, now.steady_us);
    queue_.erase_if_unused(demand);
  }
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::JOB_FINISHED);
  info.set_message("its job finished");
  actors_.fail_waiting(
      [&](const HostedActor& actor) { return actor.job == job && !actor.outlives_job; }, info,
      false);
  dismiss_workers_of(job, false, now);
  pump(now);
}

void NodeCore::job_over(JobId job, Now now) {
  if (job.is_nil()) return;
  job_finished(job, now);
  dismiss_workers_of(job, true, now);
  pump(now);
}

void NodeCore::dismiss_workers_of(JobId job, bool also_outliving, Now now) {
  std::vector<WorkerId> ending;
  for (const auto& [id, worker] : pool_.all()) {
    if (worker->job == job && worker->state != WorkerState::kDriver &&
        (also_outliving || !worker->outlives_job))
      ending.push_back(id);
  }
  for (const WorkerId& id : ending)
    dismiss_worker(*pool_.find(id), proto::ExitInfo::JOB_FINISHED, "its job finished", now);
}

}  // namespace rt::node
