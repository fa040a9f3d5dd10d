#include "daemons/node_manager/service/admission.h"

#include <utility>

#include "common/base/clock.h"

namespace rt::node {

Admission::Admission(const NodeManagerOptions& options, Parts node)
    : options_(options),
      node_(std::move(node)),
      desk_(node_.driver.core(), options.head.to_string()) {}

void Admission::ask(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request,
                    proto::RegisterWorkerReply* reply, google::protobuf::Closure* done) {
  const rpc::Connection& connection = *call.connection();
  Session* session = node_.sessions.find(connection);
  AdmissionDesk::Applicant applicant;
  if (session) applicant = {session->id, connection.peer().is_unix, session->worker};
  const auto entry = desk_.ask(session ? &applicant : nullptr);
  if (!entry) {
    call.fail(entry.error());
    return done->Run();
  }
  if (*entry == AdmissionDesk::Entry::kWaits) {
    // `request`, `reply` and `call` stay valid until done->Run().
    waiting_.push_back([this, &call, &request, reply, done] { ask(call, request, reply, done); });
    return;
  }
  if (request.is_driver()) return admit_driver(call, request, reply, done);
  admit_worker(*session, call, request, reply);
  done->Run();
}

void Admission::open(const proto::RegisterNodeReply& registration) {
  dashboard_address_ = registration.dashboard_address();
  cluster_id_ = registration.cluster_id();
  desk_.open();
  for (auto& again : std::exchange(waiting_, {})) again();
}

void Admission::admit_worker(Session& session, rpc::ServerCall& call,
                             const proto::RegisterWorkerRequest& request,
                             proto::RegisterWorkerReply* reply) {
  const WorkerId id = WorkerId::from_binary(request.worker_id());
  if (Status admitted = desk_.admit_worker(id); !admitted) return call.fail(admitted.error());
  // Before the core can grant a lease of this worker or send it an actor.
  node_.sessions.name(session, id);
  fill(reply);
  Status registered;
  node_.driver.drive([&](NodeCore& core, Now now) {
    registered = core.worker_registered(id, request.pid(), request.socket_path(), now);
  });
  if (registered) return node_.sessions.joined(session, request.socket_path(), reply);
  node_.sessions.unname(session);
  call.fail(registered.error());
}

// ---- drivers

void Admission::admit_driver(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request,
                             proto::RegisterWorkerReply* reply, google::protobuf::Closure* done) {
  const proto::JobConfig& config = request.job_config();
  const OwnerId driver = node_.sessions.find(*call.connection())->id;
  const JobId given = JobId::from_binary(config.job_id());
  rpc::Connection* head = node_.head.connection();
  const auto admitted = desk_.admit_driver(driver, given, head != nullptr);
  if (!admitted || *admitted == AdmissionDesk::Driver::kJoins) {
    admitted ? driver_joined(call, request, given, config.ray_namespace(), reply)
             : call.fail(admitted.error());
    return done->Run();
  }
  proto::AddJobRequest add;
  *add.mutable_config() = config;
  add.set_worker_id(request.worker_id());
  add.set_node_id(options_.node_id.binary());
  add.set_ip(options_.node_ip);
  add.set_pid(request.pid());
  auto answered = [this, driver, &call, &request, reply, done,
                   alive = alive_](Result<proto::AddJobReply> added) {
    if (!*alive) return;
    const AdmissionDesk::Answer answer = desk_.head_answered(driver, added);
    finish_job(answer.finish);
    if (answer.refusal) call.fail(*answer.refusal);
    if (!answer.join.is_nil())
      driver_joined(call, request, answer.join, added->ray_namespace(), reply);
    done->Run();
  };
  // Without a limit: an answer that nobody awaits any more would leave a job that nobody ends. The
  // call ends with the connection, and the head learns at the next registration which jobs live.
  constexpr int64_t kNoLimit = -1;
  rpc::call(*head, &proto::HeadService::Stub::AddJob, add, kNoLimit, std::move(answered));
}

void Admission::driver_joined(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request,
                              JobId job, const std::string& ray_namespace,
                              proto::RegisterWorkerReply* reply) {
  Session& session = *node_.sessions.find(*call.connection());
  const WorkerId id = driver_worker_id(job);
  Status joined;
  node_.driver.drive([&](NodeCore& core, Now now) {
    joined = core.add_driver(id, job, request.pid(), request.socket_path(), now);
  });
  if (!joined) {
    call.fail(joined.error());
    return finish_job(desk_.driver_refused(session.id));
  }
  node_.sessions.name(session, id);
  session.is_driver = true;
  session.job = job;
  proto::JobInfo info;
  info.set_job_id(job.binary());
  *info.mutable_config() = request.job_config();
  info.mutable_config()->set_job_id(job.binary());
  info.mutable_config()->set_ray_namespace(ray_namespace);
  info.set_driver_ip(options_.node_ip);
  info.set_driver_pid(request.pid());
  info.set_driver_worker_id(id.binary());
  info.set_driver_node_id(options_.node_id.binary());
  info.set_start_time_ms(wall_now_us() / 1000);
  desk_.driver_joined(session.id, info);
  fill(reply);
  node_.sessions.joined(session, request.socket_path(), reply);
  reply->set_job_id(job.binary());
  reply->set_ray_namespace(ray_namespace);
  for (const std::string& line : node_.membership.problems()) {
    proto::LeaseNotice notice;
    notice.set_message(line);
    rpc::notify(*session.connection, &proto::NodeClientService::Stub::OnLeaseNotice, notice);
  }
}

void Admission::left(OwnerId owner) { finish_job(desk_.left(owner)); }

void Admission::finish_job(const JobId& job) {
  if (job.is_nil()) return;
  proto::FinishJobRequest finish;
  finish.set_job_id(job.binary());
  node_.head.send_reliably(&proto::HeadService::Stub::FinishJob, finish);
}

// ---- replies

void Admission::fill(proto::RegisterWorkerReply* reply) const {
  reply->set_node_id(options_.node_id.binary());
  reply->set_cluster_id(cluster_id_);
  reply->set_session_dir(options_.session_dir);
  reply->set_session_name(options_.session_name());
  reply->set_ip(options_.node_ip);
  reply->set_port(node_.driver.core().view().identity().port);
  reply->set_head_address(options_.head.to_string());
  reply->set_object_store_socket(options_.store_socket);
  if (node_.store) {
    reply->set_object_store_pid(node_.store->pid());
    reply->set_object_store_problem(node_.store->problem());
  }
  reply->set_token(options_.token);
  reply->set_dashboard_address(dashboard_address_);
  reply->set_node_name(options_.shown_name());
  const auto& nodes = node_.membership.nodes();
  for (const auto& [id, node] : nodes) *reply->add_nodes() = node;
  if (!nodes.contains(options_.node_id)) node_.fill_node(reply->add_nodes());
}

}  // namespace rt::node
