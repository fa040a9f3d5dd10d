// NodeCore: processes from start to exit.
#include "common/base/utf8.h"
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

void NodeCore::warn_of_bounds(Now now) {
  auto tell = [&](const WorkerKind& kind, JobId job, const std::string& what, int64_t since_us) {
    std::string text = workers_.starts().warning(kind, job, what, since_us, now);
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
  for (const auto& [key, demand] : leases_.queue().all()) {
    if (demand.want > 0 && demand.lacks == Demand::Lacks::kWorker)
      tell(demand.kind, demand.job, demand.what, demand.waiting_since_us);
  }
}

void NodeCore::worker_spawned(const WorkerId& id, int pid, Now) { workers_.spawned(id, pid); }

void NodeCore::worker_start_failed(const WorkerId& id, const std::string& why, Now now) {
  if (workers_.start_failed(id, why, now)) pump(now);
}

void NodeCore::worker_setup_failed(const WorkerId& id, const std::string& why, Now now) {
  if (workers_.setup_failed(id, why, now)) pump(now);
}

Status NodeCore::worker_registered(const WorkerId& id, int pid, const std::string& socket_path,
                                   Now now) {
  RT_TRY(workers_.registered(id, pid, socket_path, now));
  pump(now);
  return {};
}

Status NodeCore::add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                            Now now) {
  RT_TRY(workers_.add_driver(id, job, pid, socket_path, now));
  pump(now);
  return {};
}

void NodeCore::worker_disconnected(const WorkerId& id, Now now) {
  if (workers_.disconnected(id, now)) pump(now);
}

void NodeCore::worker_exited(const WorkerId& id, const ProcessEnd& end, Now now) {
  if (workers_.exited(id, end, now)) pump(now);
}

// ---- what becomes of processes

void NodeCore::work_ended(Worker& worker, Now now) {
  if (worker.state == WorkerState::kLeased) {
    leases_.end(worker.lease, false, now);
  } else if (worker.state == WorkerState::kActor) {
    workers_.release_held(worker);
    actors_.begin_end(worker);
  }
}

ActorId NodeCore::actor_in(const Worker& worker) const { return actors_.in_process(worker); }

void NodeCore::process_ended(const RoomKey& room, const proto::ExitInfo& info) {
  bundle_desk_.vacated(room);
  actors_.ended(WorkerId::from_binary(info.worker_id()), info);
}

void NodeCore::cannot_start(const WorkerKind& kind, const std::string& message, Code code,
                            Now now) {
  leases_.fail(kind, message, code, now);
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

void NodeCore::set_blocked(const WorkerId& id, bool blocked, Now now) {
  Worker* worker = workers_.pool().find(id);
  if (!worker || worker->blocked == blocked) return;
  if (worker->state != WorkerState::kLeased && worker->state != WorkerState::kActor) return;
  ResourceSet cpu = cpu_part(worker->held);
  if (blocked) {
    rooms_.change(worker->room).lend(cpu);
  } else {
    rooms_.change(worker->room).take_back(cpu);
  }
  workers_.pool().set_blocked(*worker, blocked);
  pump(now);
  sink_.resources_changed();
}

void NodeCore::worker_leaves(const WorkerId& id, Leaving stage, Now now) {
  Worker* worker = workers_.pool().find(id);
  if (!worker) return;
  worker->leave_by_us =
      stage == Leaving::kHasHeard ? 0 : now.steady_us + settings_.worker_exit_timeout_ms * 1000;
}

void NodeCore::job_finished(JobId job, Now now) {
  if (job.is_nil() || !finished_jobs_.add(job)) return;
  workers_.starts().forget(job);
  leases_.drop(job, now);
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::JOB_FINISHED);
  info.set_message("its job finished");
  actors_.fail_waiting(
      [&](const HostedActor& actor) { return actor.job == job && !actor.outlives_job; }, info,
      false);
  workers_.dismiss_all_of(job, false, now);
  pump(now);
}

void NodeCore::job_over(JobId job, Now now) {
  if (job.is_nil()) return;
  job_finished(job, now);
  workers_.dismiss_all_of(job, true, now);
  pump(now);
}

}  // namespace rt::node
