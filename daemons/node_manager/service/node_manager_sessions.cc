// NodeManager: connections from workers, drivers and owners on other nodes, and connections that
// are handed on to other processes of this node.
#include <fmt/core.h>

#include <algorithm>

#include "common/base/log.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {
namespace {
constexpr int64_t kAddJobTimeoutUs = 30'000'000;
constexpr size_t kMaxWaitingRegistrations = 10'000;
}  // namespace

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
  if (session.is_driver) driver_jobs_.erase(session.job.binary());
  if (stopping_) return;  // stop() ends the processes itself
  drive([&](NodeCore& core, Now now) {
    core.owner_closed(session.id, now);
    if (!session.worker.is_nil()) core.worker_disconnected(session.worker, now);
  });
  if (!session.is_driver) return;
  RT_INFO("driver of job {} left", session.job.hex());
  job_finished(session.job);
  proto::FinishJobRequest finish;
  finish.set_job_id(session.job.binary());
  head_->send_reliably(&proto::HeadService::Stub::FinishJob, finish);
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

// ---- registration

void NodeManager::register_process(rpc::ServerCall& call,
                                   const proto::RegisterWorkerRequest& request,
                                   proto::RegisterWorkerReply* reply,
                                   google::protobuf::Closure* done) {
  const rpc::Connection* connection = call.connection().get();
  Session* session = sessions_.find(*connection);
  std::string refusal;
  if (!session || stopping_) {
    refusal = "the node-manager stops";
  } else if (!connection->peer().is_unix) {
    refusal =
        "workers and drivers can register only over the Unix socket of their own node's "
        "node-manager";
  } else if (!session->worker.is_nil()) {
    refusal = "this connection has registered a process already";
  } else if (!registered_once_ && when_registered_.size() >= kMaxWaitingRegistrations) {
    refusal = "too many processes wait for this node to join its cluster";
  }
  if (!refusal.empty()) {
    call.fail(make_error(Code::kInvalid, refusal));
    return done->Run();
  }
  if (!registered_once_) {
    // `request`, `reply` and `call` stay valid until done->Run().
    when_registered_.push_back(
        [this, &call, &request, reply, done] { register_process(call, request, reply, done); });
    return;
  }
  if (request.is_driver()) return register_driver(connection, call, request, reply, done);
  register_worker(*session, call, request, reply);
  done->Run();
}

void NodeManager::register_worker(Session& session, rpc::ServerCall& call,
                                  const proto::RegisterWorkerRequest& request,
                                  proto::RegisterWorkerReply* reply) {
  WorkerId id = WorkerId::from_binary(request.worker_id());
  // Before the core can grant a lease of this worker or send it an actor.
  sessions_.name(session, id);
  Status registered;
  const Worker* known = core().worker(id);
  if (known && known->connected) {
    registered = make_error(Code::kAlreadyExists, "this worker is connected already");
  } else {
    fill_register_reply(reply);
    drive([&](NodeCore& core, Now now) {
      registered = core.worker_registered(id, request.pid(), request.socket_path(), now);
    });
  }
  if (registered) return sessions_.joined(session, request.socket_path(), reply);
  sessions_.unname(session);
  call.fail(registered.error());
}

void NodeManager::register_driver(const rpc::Connection* connection, rpc::ServerCall& call,
                                  const proto::RegisterWorkerRequest& request,
                                  proto::RegisterWorkerReply* reply,
                                  google::protobuf::Closure* done) {
  JobId given = JobId::from_binary(request.job_config().job_id());
  if (!given.is_nil()) {
    driver_joined(connection, call, request, given, request.job_config().ray_namespace(), reply);
    return done->Run();
  }
  rpc::Connection* head = head_->connection();
  if (!head) {
    call.fail(make_error(Code::kUnavailable,
                         fmt::format("the head at {} cannot be reached at the moment; try again",
                                     options_.head.to_string())));
    return done->Run();
  }
  proto::AddJobRequest add;
  *add.mutable_config() = request.job_config();
  add.set_worker_id(request.worker_id());
  add.set_node_id(options_.node_id.binary());
  add.set_ip(options_.node_ip);
  add.set_pid(request.pid());
  rpc::call(*head, &proto::HeadService::Stub::AddJob, add, kAddJobTimeoutUs,
            [this, connection, &call, &request, reply, done,
             alive = alive_](Result<proto::AddJobReply> added) {
              if (!*alive) return;
              if (!added) {
                call.fail(added.error());
              } else if (sessions_.find(*connection)) {
                driver_joined(connection, call, request, JobId::from_binary(added->job_id()),
                              added->ray_namespace(), reply);
              } else {
                // The driver has disconnected meanwhile.
                proto::FinishJobRequest finish;
                finish.set_job_id(added->job_id());
                head_->send_reliably(&proto::HeadService::Stub::FinishJob, finish);
              }
              done->Run();
            });
}

void NodeManager::driver_joined(const rpc::Connection* connection, rpc::ServerCall& call,
                                const proto::RegisterWorkerRequest& request, JobId job,
                                const std::string& ray_namespace,
                                proto::RegisterWorkerReply* reply) {
  Session& session = *sessions_.find(*connection);
  WorkerId id = driver_worker_id(job);
  Status joined;
  drive([&](NodeCore& core, Now now) {
    joined = core.add_driver(id, job, request.pid(), request.socket_path(), now);
  });
  if (!joined) return call.fail(joined.error());
  sessions_.name(session, id);
  session.is_driver = true;
  session.job = job;
  proto::JobInfo& info = driver_jobs_[job.binary()];
  info.set_job_id(job.binary());
  *info.mutable_config() = request.job_config();
  info.mutable_config()->set_job_id(job.binary());
  info.mutable_config()->set_ray_namespace(ray_namespace);
  info.set_driver_ip(options_.node_ip);
  info.set_driver_pid(request.pid());
  info.set_driver_worker_id(id.binary());
  info.set_driver_node_id(options_.node_id.binary());
  info.set_start_time_ms(wall_now_us() / 1000);
  fill_register_reply(reply);
  sessions_.joined(session, request.socket_path(), reply);
  reply->set_job_id(job.binary());
  reply->set_ray_namespace(ray_namespace);
  for (const std::string& line : membership_.problems()) {
    proto::LeaseNotice notice;
    notice.set_message(line);
    rpc::notify(*session.connection, &proto::NodeClientService::Stub::OnLeaseNotice, notice);
  }
}

void NodeManager::fill_register_reply(proto::RegisterWorkerReply* reply) {
  reply->set_node_id(options_.node_id.binary());
  reply->set_cluster_id(cluster_id_);
  reply->set_session_dir(options_.session_dir);
  reply->set_session_name(options_.session_name());
  reply->set_ip(options_.node_ip);
  reply->set_port(server_->port());
  reply->set_head_address(options_.head.to_string());
  reply->set_object_store_socket(options_.store_socket);
  if (store_) {
    reply->set_object_store_pid(store_->pid());
    reply->set_object_store_problem(store_->problem());
  }
  reply->set_token(options_.token);
  reply->set_dashboard_address(dashboard_address_);
  reply->set_node_name(options_.node_name.empty() ? options_.node_ip : options_.node_name);
  for (const auto& [id, node] : membership_.nodes()) *reply->add_nodes() = node;
  if (!membership_.nodes().contains(options_.node_id.binary())) fill_node(reply->add_nodes());
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
