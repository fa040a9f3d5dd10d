// NodeManager: connections from workers, drivers and owners on other nodes, and connections that
// are handed on to other processes of this node.
#include <fmt/core.h>

#include <algorithm>

#include "common/base/log.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {

void NodeManager::on_connection(const std::shared_ptr<rpc::Connection>& connection) {
  if (stopping_) return connection->close(make_error(Code::kUnavailable, "the node-manager stops"));
  sessions_.add(connection);
  connection->add_service(&rpc_);
  connection->add_service(figures_.get());
  connection->add_service(&profile_);
  connection->add_service(py_spy_.get());
  connection->set_closed_handler([this, raw = connection.get(), alive = alive_](const Error&) {
    if (*alive) on_closed(raw);
  });
}

void NodeManager::on_closed(const rpc::Connection* connection) {
  std::optional<Session> closed = sessions_.remove(connection);
  if (!closed) return;
  const Session& session = *closed;
  if (!session.worker.is_nil()) figures_->process_ended(session.worker);
  if (const int64_t lost = sessions_.take_lost_events(session); lost > 0) {
    RT_INFO("{} {} ended before it had sent {} events of tasks",
            session.is_driver ? "the driver of job" : "worker",
            session.is_driver ? session.job.hex() : session.worker.hex(), lost);
    task_events_->lost(lost);
  }
  if (stopping_) return;  // stop() ends the processes itself
  drive([&](NodeCore& core, Now now) {
    core.owner_closed(session.id, now);
    if (!session.worker.is_nil()) core.worker_disconnected(session.worker, now);
  });
  if (!session.is_driver) return;
  RT_INFO("driver of job {} left", session.job.hex());
  job_finished(session.job);
  admission_->driver_left(session.job);
}

// Connections for the object store and for workers arrive at the node's one TCP port and are
// handed on to their Unix sockets.
bool NodeManager::on_foreign(const rpc::Preamble& preamble, int fd, bool) {
  std::string path;
  if (preamble.target == "store") {
    path = options_.store_socket;
  } else if (preamble.target == "worker") {
    const Worker* worker = driver_ ? core().worker(WorkerId::from_hex(preamble.id)) : nullptr;
    if (worker && worker->connected) path = worker->socket_path;
  }
  if (path.empty()) return false;
  rpc::hand_off(loop_, path, fd, [target = preamble.target](Status status) {
    if (!status)
      RT_DEBUG("a connection for {} could not be handed on: {}", target, status.error().message);
  });
  return true;
}

// ---- task events

void NodeManager::add_task_events(const rpc::Connection& from, const proto::TaskEventBatch& batch) {
  if (Session* session = sessions_.find(from))
    session->events_received += batch.count() + batch.dropped();
  task_events_->add(batch);
}

// ---- requests of owners and workers

void NodeManager::set_demand(const rpc::Connection& from, const proto::LeaseDemand& demand) {
  Session* session = sessions_.find(from);
  if (!session || stopping_) return;
  proto::LeaseDemand mine = demand;
  mine.mutable_job()->set_python_executable(
      starter_->canonical_python(demand.job().python_executable()));
  drive([&](NodeCore& core, Now now) { core.set_demand(session->id, session->worker, mine, now); });
}

void NodeManager::return_lease(const rpc::Connection& from, const proto::LeaseReturn& request) {
  Session* session = sessions_.find(from);
  if (!session || stopping_) return;
  drive([&](NodeCore& core, Now now) { core.return_lease(session->id, request, now); });
}

void NodeManager::said_by(const rpc::Connection& from,
                          const std::function<void(NodeCore&, const WorkerId&, Now)>& event) {
  Session* session = sessions_.find(from);
  if (!session || session->worker.is_nil() || stopping_) return;
  drive([&](NodeCore& core, Now now) { event(core, session->worker, now); });
}

void NodeManager::record_metrics(const rpc::Connection& from, const proto::MetricsReport& report) {
  Session* session = sessions_.find(from);
  if (session && !session->worker.is_nil()) figures_->record(session->worker, report);
}

void NodeManager::set_waiting(const rpc::Connection& from, const proto::WaitingTasks& waiting) {
  Session* session = sessions_.find(from);
  if (!session || session->worker.is_nil() || stopping_) return;
  session->waiting = waiting;
  load_reports_->changed();
}

// The sender has not registered yet, so it is only checked that it came over the Unix socket,
// which only processes of this user can open.
void NodeManager::worker_setup_failed(const rpc::Connection& from,
                                      const proto::WorkerSetupFailure& failure) {
  if (stopping_ || !from.peer().is_unix || !WorkerId::is_valid(failure.worker_id())) return;
  RT_WARN("worker process {} could not make its runtime environment: {}", failure.pid(),
          failure.message());
  drive([&](NodeCore& core, Now now) {
    core.worker_setup_failed(WorkerId::from_binary(failure.worker_id()), failure.message(), now);
  });
}

void NodeManager::create_actor(const rpc::Connection& from,
                               const proto::CreateActorRequest& request,
                               proto::CreateActorReply* reply, google::protobuf::Closure* done) {
  proto::CreateActorRequest mine = request;
  proto::JobConfig& job = *mine.mutable_spec()->mutable_job_config();
  job.set_python_executable(starter_->canonical_python(job.python_executable()));
  head_calls_.hold(
      request, [from = from.weak_from_this(), reply, done](const proto::CreateActorReply& answer) {
        auto connection = from.lock();
        const bool heard = connection && connection->is_open();
        *reply = answer;
        done->Run();
        return heard;
      });
  drive([&](NodeCore& core, Now now) { core.create_actor(mine, now); });
}

void NodeManager::prepare_bundles(const proto::PrepareBundlesRequest& request,
                                  proto::PrepareBundlesReply* reply,
                                  google::protobuf::Closure* done) {
  head_calls_.hold(request, [reply, done](const proto::PrepareBundlesReply& answer) {
    *reply = answer;
    done->Run();
    return true;
  });
  drive([&](NodeCore& core, Now now) { core.prepare_bundles(request, now); });
}

void NodeManager::await_exit(const WorkerId& id, proto::WorkerExitReply* reply,
                             google::protobuf::Closure* done) {
  auto answer = [reply, done](const proto::WorkerExitReply& known) {
    *reply = known;
    done->Run();
  };
  exit_waits_->ask(id, answer, system_now());
  exit_alarm_.ring_by(exit_waits_->next_tick_us());
}

void NodeManager::notice(OwnerId id, const proto::LeaseNotice& notice) {
  RT_WARN("{}", notice.message());
  if (!notice.job_id().empty()) {
    proto::HeadEvent event;
    proto::Notice& line = *event.add_notices();
    line.set_severity("warning");
    line.set_text(notice.message());
    line.set_job_id(notice.job_id());
    if (head_) head_->send_oneway(&proto::HeadService::Stub::PublishLogs, event);
    return;
  }
  if (rpc::Connection* connection = sessions_.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseNotice, notice);
}

}  // namespace rt::node
