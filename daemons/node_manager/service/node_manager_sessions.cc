// NodeManager: connections from workers, drivers and owners on other nodes, and connections that
// are handed on to other processes of this node.
#include "common/base/log.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {

void NodeManager::on_connection(const std::shared_ptr<rpc::Connection>& connection) {
  if (shutdown_.has_begun())
    return connection->close(make_error(Code::kUnavailable, "the node-manager stops"));
  sessions_.add(connection);
  connection->add_service(rpc_.get());
  connection->add_service(figures_.get());
  profiling_->serve(*connection);
  // `sessions_` removes it before this object ends.
  connection->set_closed_handler([this, raw = connection.get()](const Error&) { on_closed(raw); });
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
  if (shutdown_.has_begun()) return;  // stop() ends the processes itself
  driver_->drive([&](NodeCore& core, Now now) {
    core.owner_closed(session.id, now);
    if (!session.worker.is_nil()) core.worker_disconnected(session.worker, now);
  });
  if (session.is_driver) {
    RT_INFO("driver of job {} left", session.job.hex());
    news_->news().job_finished(session.job);
  }
  admission_->left(session.id);
}

// Connections for the object store and for workers arrive at the node's one TCP port and are
// handed on to their Unix sockets.
bool NodeManager::on_foreign(const rpc::Preamble& preamble, int fd, bool) {
  std::string path;
  if (preamble.target == "store") {
    path = options_.store_socket;
  } else if (preamble.target == "worker") {
    const Worker* worker =
        driver_ ? core().view().worker(WorkerId::from_hex(preamble.id)) : nullptr;
    if (worker && worker->connected) path = worker->socket_path;
  }
  if (path.empty()) return false;
  rpc::hand_off(loop_, path, fd, [target = preamble.target](Status status) {
    if (!status)
      RT_DEBUG("a connection for {} could not be handed on: {}", target, status.error().message);
  });
  return true;
}

}  // namespace rt::node
