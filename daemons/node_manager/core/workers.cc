#include "daemons/node_manager/core/workers.h"

#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

#include "common/base/utf8.h"

namespace rt::node {
namespace {
constexpr int64_t kReapGraceUs = 2'000'000;     // from SIGKILL until a process counts as lost
constexpr int64_t kDismissGraceUs = 1'000'000;  // time for user code to clean up
constexpr int64_t kKillGraceUs = 250'000;       // time to send the recorded task events
}  // namespace

Workers::Workers(const Parts& node)
    : node_(node), pool_(node.me.id, node.me.seed), starts_(node.settings, pool_) {}

Workers::~Workers() = default;

// ---- starts

void Workers::start_needed(bool leaving, Now now) {
  for (const auto& [kind, needed] : starts_.needs()) {
    for (int missing = needed.all() - pool_.starting(kind); missing > 0; --missing) {
      if (!start_one(kind, now)) break;
    }
  }
  const int warm = this->warm();
  while (!leaving && pool_.pooled() < warm) {
    if (!start_one(WorkerKind{}, now)) break;
  }
}

bool Workers::start_one(const WorkerKind& kind, Now now) {
  WorkerStarts::Hold hold = starts_.ask(kind, now);
  if (Worker* idle = hold == WorkerStarts::Hold::kMaxWorkers ? pool_.longest_idle() : nullptr) {
    retire(*idle, "it was idle and the node had reached max_workers", now);
    hold = starts_.ask(kind, now);
  }
  if (hold != WorkerStarts::Hold::kNone) return false;
  starts_.started(now);
  Worker& worker = pool_.add_starting(kind, now);
  worker.start_wall_us = now.wall_us;
  node_.sink.spawn_worker(worker.id, kind);
  return true;
}

void Workers::spawned(const WorkerId& id, int pid) {
  node_.counters.set_workers_started(node_.counters.workers_started() + 1);
  if (Worker* worker = pool_.find(id)) worker->pid = pid;
}

bool Workers::start_failed(const WorkerId& id, const std::string& why, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker) return false;
  bool starting = worker->state == WorkerState::kStarting;
  WorkerKind kind = worker->kind;
  if (starting) note_runtime_env(*worker, why, now);
  if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
  pool_.remove(id);
  node_.counters.set_worker_starts_failed(node_.counters.worker_starts_failed() + 1);
  if (starting) record_failure(kind, why, now);
  return true;
}

void Workers::note_runtime_env(const Worker& worker, const std::string& error, Now now) {
  if (worker.kind.runtime_env.empty()) return;
  std::set<std::string> in_use;
  for (const auto& [runtime_env, count] : by_runtime_env()) in_use.insert(runtime_env);
  runtime_envs_.record(worker.kind.runtime_env, error, now.steady_us - worker.since_us, in_use);
}

std::map<std::string, int> Workers::by_runtime_env() const {
  std::map<std::string, int> workers;
  for (const auto& [id, worker] : pool_.all()) {
    if (!worker->kind.runtime_env.empty() && worker->state != WorkerState::kDying)
      ++workers[worker->kind.runtime_env];
  }
  return workers;
}

void Workers::record_failure(const WorkerKind& kind, const std::string& why, Now now) {
  if (!starts_.failed(kind, why, now)) return;
  node_.listener.cannot_start(
      kind, fmt::format("no worker process can be started on node {}: {}", node_.me.ip, why),
      kind.runtime_env.empty() ? Code::kInternal : Code::kRuntimeEnvSetup, now);
}

void Workers::warn_of_bound(const WorkerKind& kind, JobId job, const std::string& what,
                            int64_t since_us, Now now) {
  const std::string text = starts_.warning(kind, job, what, since_us, now);
  if (text.empty()) return;
  proto::LeaseNotice notice;
  notice.set_job_id(job.binary());
  notice.set_message(printable(text));
  node_.sink.notice(0, notice);
}

bool Workers::setup_failed(const WorkerId& id, const std::string& why, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker || worker->state != WorkerState::kStarting || worker->kind.runtime_env.empty())
    return false;
  WorkerKind kind = worker->kind;
  note_runtime_env(*worker, why, now);
  end(*worker, proto::ExitInfo::INIT_FAILED, "its runtime environment could not be made", now);
  node_.listener.cannot_start(kind, fmt::format("{} (on node {})", why, node_.me.ip),
                              Code::kRuntimeEnvSetup, now);
  return true;
}

Status Workers::registered(const WorkerId& id, int pid, const std::string& socket_path, Now now) {
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
  pool_.set_state(*worker, WorkerState::kIdle, now);
  return {};
}

Status Workers::add_driver(const WorkerId& id, JobId job, int pid, const std::string& socket_path,
                           Now now) {
  if (job.is_nil()) return make_error(Code::kInvalid, "a driver needs a job id");
  if (pool_.find(id))
    return make_error(Code::kAlreadyExists,
                      fmt::format("driver {} is connected already", id.hex()));
  Worker& driver = pool_.add_driver(id, job, now);
  driver.start_wall_us = now.wall_us;
  driver.pid = pid;
  driver.socket_path = socket_path;
  return {};
}

// ---- ends

void Workers::release_held(Worker& worker) {
  node_.rooms.change(worker.room)
      .give_back(releasable_resources(worker), std::exchange(worker.gpus, {}));
  worker.held = ResourceSet();
  pool_.set_blocked(worker, false);
}

void Workers::begin_dying(Worker& worker, Now now) {
  if (worker.state == WorkerState::kLeased || worker.state == WorkerState::kActor)
    node_.listener.work_ended(worker, now);
  pool_.set_state(worker, WorkerState::kDying, now);
}

void Workers::end(Worker& worker, proto::ExitInfo::Kind why, const std::string& message, Now now) {
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
    record_failure(worker.kind, message, now);
  if (!worker.forced) worker.since_us = now.steady_us;
  worker.forced = true;
  node_.sink.kill_worker(worker.id);
}

void Workers::dismiss(Worker& worker, proto::ExitInfo::Kind why, const std::string& message,
                      Now now) {
  // There may be several reasons in a row: its owner ends, then its job finishes.
  if (worker.dismissed && worker.state == WorkerState::kDying) return;
  bool can_hear = worker.connected && worker.state != WorkerState::kStarting &&
                  worker.state != WorkerState::kDying && worker.state != WorkerState::kDriver;
  if (!can_hear) return end(worker, why, message, now);
  begin_dying(worker, now);
  worker.since_us = now.steady_us;
  worker.dismissed = true;
  worker.intent.set_kind(why);
  worker.intent.set_message(message);
  proto::KillWorkerRequest request;
  request.set_worker_id(worker.id.binary());
  request.set_why(why);
  request.set_message(message);
  node_.sink.ask_exit(worker.id, request);
}

bool Workers::disconnected(const WorkerId& id, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker) return false;
  worker->connected = false;
  if (worker->state == WorkerState::kDriver) {
    driver_left(*worker, now);
    return false;
  }
  // A worker without its connection must not go on, so it is killed. If it was exiting by itself,
  // its exit status says why.
  if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
  worker->forced = true;
  worker->since_us = now.steady_us;
  node_.sink.kill_worker(id);
  return true;
}

void Workers::driver_left(Worker& driver, Now now) {
  const WorkerId id = driver.id;
  proto::ProcessInfo process = describe(driver, ActorId::nil());
  const proto::ExitInfo info = describe_end_of_driver(node_.me, driver);
  pool_.set_state(driver, WorkerState::kDying, now);
  pool_.remove(id);
  exits_.add(std::move(process), info, now);
  node_.sink.worker_died(id, info);
}

bool Workers::exited(const WorkerId& id, const ProcessEnd& end, Now now) {
  Worker* worker = pool_.find(id);
  if (!worker || worker->state == WorkerState::kDriver) return false;
  if (worker->state == WorkerState::kStarting) {
    const proto::ExitInfo info = describe_end(node_.me, *worker, end);
    std::string why = "it ended before it had registered: " + info.message();
    if (!end.log_tail.empty()) why += "\nThe last lines of its log:\n" + end.log_tail;
    WorkerKind kind = worker->kind;
    note_runtime_env(*worker, why, now);
    begin_dying(*worker, now);
    finish(*worker, end, now);
    record_failure(kind, why, now);
  } else {
    if (worker->state != WorkerState::kDying) begin_dying(*worker, now);
    finish(*worker, end, now);
  }
  return true;
}

void Workers::finish(Worker& worker, const ProcessEnd& end, Now now) {
  const proto::ExitInfo info = describe_end(node_.me, worker, end);
  proto::ProcessInfo process = describe(worker, node_.listener.actor_in(worker));
  WorkerId id = worker.id;
  const RoomKey room = worker.room;
  pool_.remove(id);
  exits_.add(std::move(process), info, now);
  bool failed = info.kind() == proto::ExitInfo::SIGNALED ||
                info.kind() == proto::ExitInfo::UNKNOWN ||
                (info.kind() == proto::ExitInfo::EXITED && info.exit_code() != 0);
  if (failed) node_.counters.set_workers_failed(node_.counters.workers_failed() + 1);
  if (info.kind() == proto::ExitInfo::OUT_OF_MEMORY)
    node_.counters.set_out_of_memory_kills(node_.counters.out_of_memory_kills() + 1);
  node_.listener.process_ended(room, info);
  node_.sink.worker_died(id, info);
}

void Workers::dismiss_all_of(JobId job, bool also_outliving, Now now) {
  std::vector<WorkerId> ending;
  for (const auto& [id, worker] : pool_.all()) {
    if (worker->job == job && worker->state != WorkerState::kDriver &&
        (also_outliving || !worker->outlives_job))
      ending.push_back(id);
  }
  for (const WorkerId& id : ending)
    dismiss(*pool_.find(id), proto::ExitInfo::JOB_FINISHED, "its job finished", now);
}

// Asks an idle worker to leave, rather than killing it: it may own objects that others still use.
void Workers::retire(Worker& idle, const std::string& why, Now now) {
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

void Workers::ask_to_leave(Worker& worker, const proto::KillWorkerRequest& request, Now now) {
  worker.leave_by_us = now.steady_us + node_.settings.worker_exit_timeout_ms * 1000;
  node_.sink.ask_exit(worker.id, request);
}

// Ends workers beyond prestart_workers that have been idle for idle_worker_timeout_ms.
void Workers::retire_idle(Now now) {
  const int warm = this->warm();
  while (pool_.pooled() > warm) {
    Worker* idle = pool_.longest_idle();
    if (!idle || now.steady_us - idle->since_us < node_.settings.idle_worker_timeout_ms * 1000)
      return;
    retire(*idle, "it was idle and not needed any more", now);
  }
}

// Ends processes that should have registered by now, and kills or gives up on those that should
// have exited.
void Workers::reap_overdue(Now now) {
  std::vector<WorkerId> late, lost, stubborn, stays;
  for (const auto& [id, worker] : pool_.all()) {
    int64_t age = now.steady_us - worker->since_us;
    if (worker->state == WorkerState::kStarting &&
        age > node_.settings.worker_register_timeout_ms * 1000) {
      // A worker that makes a runtime environment first has more time. It reports itself when the
      // environment's own time-out has passed (setup_failed()).
      int64_t more =
          worker->kind.runtime_env.empty() ? 0 : setup_timeout_us(worker->kind.runtime_env);
      if (more >= 0 && age > node_.settings.worker_register_timeout_ms * 1000 + more)
        late.push_back(id);
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
        worker.intent.message(), node_.settings.worker_exit_timeout_ms));
    end(worker, worker.intent.kind(), worker.intent.message(), now);
  }
  for (const WorkerId& id : stubborn) {
    Worker& worker = *pool_.find(id);
    end(worker, worker.intent.kind(), worker.intent.message(), now);
  }
  for (const WorkerId& id : late) {
    Worker& worker = *pool_.find(id);
    end(worker, proto::ExitInfo::UNKNOWN, "it did not register with the node-manager in time", now);
  }
  for (const WorkerId& id : lost) {
    Worker& worker = *pool_.find(id);
    finish(worker, ProcessEnd{}, now);
  }
}

// ---- records

void Workers::fill_processes(proto::ProcessesReply* reply) const {
  for (const auto& [id, worker] : pool_.all())
    *reply->add_processes() = describe(*worker, node_.listener.actor_in(*worker));
  exits_.fill(reply);
}

proto::WorkerAddress Workers::address_of(const Worker& worker) const {
  proto::WorkerAddress address;
  address.set_node_id(node_.me.id.binary());
  address.set_worker_id(worker.id.binary());
  address.set_ip(node_.me.ip);
  address.set_port(node_.me.port);
  address.set_socket_path(worker.socket_path);
  return address;
}

bool Workers::needs_ticks(bool started) const {
  const int surplus = pool_.pooled() - warm();
  if (pool_.count(WorkerState::kStarting) > 0 ||
      (surplus > 0 && pool_.count(WorkerState::kIdle) > 0))
    return true;
  for (const auto& [id, worker] : pool_.all()) {
    if (worker->leave_by_us > 0 ||
        (worker->state == WorkerState::kDying && (worker->forced || worker->dismissed)))
      return true;
  }
  // Fewer workers than prestart_workers: a start has failed and is retried after its back-off.
  return started && surplus < 0;
}

void Workers::check_invariants() const {
  pool_.check_invariants();
  exits_.check_invariants();
}

}  // namespace rt::node
