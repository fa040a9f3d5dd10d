#include "daemons/node_manager/core/exit_records.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

namespace rt::node {
namespace {

void name_process(const NodeIdentity& me, const Worker& worker, proto::ExitInfo* info) {
  info->set_node_id(me.id.binary());
  info->set_ip(me.ip);
  info->set_pid(worker.pid);
  info->set_worker_id(worker.id.binary());
}

}  // namespace

proto::ExitInfo describe_end(const NodeIdentity& me, const Worker& worker, const ProcessEnd& end) {
  proto::ExitInfo info = worker.intent;
  std::string how;
  if (end.known && end.signal > 0) {
    if (info.kind() == proto::ExitInfo::UNKNOWN) info.set_kind(proto::ExitInfo::SIGNALED);
    info.set_signal(end.signal);
    const char* name = sigabbrev_np(end.signal);
    how = fmt::format("was killed by signal {}{}", end.signal,
                      name ? fmt::format(" (SIG{})", name) : "");
  } else if (end.known) {
    if (info.kind() == proto::ExitInfo::UNKNOWN) info.set_kind(proto::ExitInfo::EXITED);
    info.set_exit_code(end.exit_code);
    how = fmt::format("exited with code {}", end.exit_code);
  } else {
    how = "ended with an unknown exit status";
  }
  // The reason for which the node-manager ended it says more than the signal it sent.
  info.set_message(worker.intent.message().empty()
                       ? fmt::format("worker process {} on node {} {}", worker.pid, me.ip, how)
                       : fmt::format("worker process {} on node {} was ended: {}", worker.pid,
                                     me.ip, worker.intent.message()));
  info.set_log_tail(end.log_tail);
  name_process(me, worker, &info);
  return info;
}

proto::ExitInfo describe_end_of_driver(const NodeIdentity& me, const Worker& driver) {
  proto::ExitInfo info;
  info.set_kind(proto::ExitInfo::EXITED);
  info.set_message("the driver disconnected or ended");
  name_process(me, driver, &info);
  return info;
}

proto::ProcessInfo describe(const Worker& worker, const ActorId& actor) {
  proto::ProcessInfo process;
  process.set_worker_id(worker.id.binary());
  process.set_pid(worker.pid);
  process.set_is_driver(worker.state == WorkerState::kDriver);
  process.set_alive(true);
  process.set_start_time_ms(worker.start_wall_us / 1000);
  if (!worker.job.is_nil()) process.set_job_id(worker.job.binary());
  if (!actor.is_nil()) process.set_actor_id(actor.binary());
  process.set_language(worker.kind.language);
  process.set_socket_path(worker.socket_path);
  return process;
}

void ExitRecords::add(proto::ProcessInfo process, const proto::ExitInfo& info, Now now) {
  const WorkerId id = WorkerId::from_binary(process.worker_id());
  process.set_alive(false);
  process.set_end_time_ms(now.wall_us / 1000);
  *process.mutable_exit() = info;
  if (!ends_.insert_or_assign(id, std::move(process)).second) return;
  order_.push_back(id);
  if (order_.size() <= kMost) return;
  ends_.erase(order_.front());
  order_.pop_front();
}

const proto::ExitInfo* ExitRecords::find(const WorkerId& id) const {
  auto it = ends_.find(id);
  return it == ends_.end() ? nullptr : &it->second.exit();
}

void ExitRecords::fill(proto::ProcessesReply* reply) const {
  for (const WorkerId& id : order_) *reply->add_processes() = ends_.at(id);
}

void ExitRecords::check_invariants() const { RT_CHECK(ends_.size() == order_.size()); }

}  // namespace rt::node
