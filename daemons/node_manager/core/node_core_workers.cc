// NodeCore: processes from start to exit.
#include "daemons/node_manager/core/node_core.h"

namespace rt::node {

void NodeCore::worker_spawned(const WorkerId& id, int pid, Now now) {
  const Event event(*this, now);
  workers_.spawned(id, pid);
}

void NodeCore::worker_start_failed(const WorkerId& id, const std::string& why, Now now) {
  const Event event(*this, now);
  if (workers_.start_failed(id, why, now)) pump(now);
}

void NodeCore::worker_setup_failed(const WorkerId& id, const std::string& why, Now now) {
  const Event event(*this, now);
  if (workers_.setup_failed(id, why, now)) pump(now);
}

Status NodeCore::worker_registered(const WorkerId& id, int pid, const std::string& socket_path,
                                   Now now) {
  const Event event(*this, now);
  RT_TRY(workers_.registered(id, pid, socket_path, now));
  pump(now);
  return {};
}

Status NodeCore::add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                            Now now) {
  const Event event(*this, now);
  RT_TRY(workers_.add_driver(id, job, pid, socket_path, now));
  pump(now);
  return {};
}

void NodeCore::worker_disconnected(const WorkerId& id, Now now) {
  const Event event(*this, now);
  if (workers_.disconnected(id, now)) pump(now);
}

void NodeCore::worker_exited(const WorkerId& id, const ProcessEnd& end, Now now) {
  const Event event(*this, now);
  if (workers_.exited(id, end, now)) pump(now);
}

void NodeCore::set_blocked(const WorkerId& id, bool blocked, Now now) {
  const Event event(*this, now);
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
  const Event event(*this, now);
  Worker* worker = workers_.pool().find(id);
  if (!worker) return;
  worker->leave_by_us =
      stage == Leaving::kHasHeard ? 0 : now.steady_us + settings_.worker_exit_timeout_ms * 1000;
}

void NodeCore::job_finished(JobId job, Now now) {
  const Event event(*this, now);
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
  const Event event(*this, now);
  if (job.is_nil()) return;
  job_finished(job, now);
  workers_.dismiss_all_of(job, true, now);
  pump(now);
}

}  // namespace rt::node
