// NodeManager: the decisions of the core, carried out.
#include <fmt/format.h>

#include "common/base/log.h"
#include "daemons/node_manager/service/node_manager.h"

namespace rt::node {

void NodeManager::grant(OwnerId id, const proto::LeaseGrant& grant) {
  WorkerId worker = WorkerId::from_binary(grant.worker().worker_id());
  if (const Worker* leased = core().worker(worker)) logs_->set_job(worker, leased->job.binary());
  if (rpc::Connection* connection = sessions_.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseGrant, grant);
}

void NodeManager::revoke(OwnerId id, const proto::LeaseRevoke& revoke) {
  if (rpc::Connection* connection = sessions_.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseRevoke, revoke);
}

void NodeManager::redirect(OwnerId id, const proto::LeaseRedirect& redirect) {
  if (rpc::Connection* connection = sessions_.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseRedirect, redirect);
}

void NodeManager::spawn_worker(const WorkerId& id, const WorkerKind& kind) {
  starter_->spawn(id, kind);
}

void NodeManager::kill_worker(const WorkerId& id) {
  RT_DEBUG("worker {} is killed", id.hex());
  starter_->kill(id);
}

void NodeManager::ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) {
  if (rpc::Connection* connection = sessions_.process(id)) {
    rpc::call(*connection, &proto::NodeClientService::Stub::Exit, request, -1,
              [this, id, alive = alive_](Result<proto::Empty> heard) {
                if (*alive && heard && !stopping_)
                  drive([&](NodeCore& core, Now now) {
                    core.worker_leaves(id, NodeCore::Leaving::kHasHeard, now);
                  });
              });
  }
}

void NodeManager::start_actor(const WorkerId& id, const proto::CreateActorRequest& request) {
  logs_->set_job(id, request.spec().job_id());
  ActorId actor = ActorId::from_binary(request.spec().actor_id());
  int64_t epoch = request.epoch();
  auto answer = [this, actor, epoch, alive = alive_](Result<proto::CreateActorReply> reply) {
    if (*alive && !stopping_)
      drive([&](NodeCore& core, Now now) { core.actor_start_done(actor, epoch, reply, now); });
  };
  if (rpc::Connection* connection = sessions_.process(id)) {
    rpc::call(*connection, &proto::NodeClientService::Stub::StartActor, request, -1,
              std::move(answer));
  } else {
    loop_.post([answer] { answer(make_error(Code::kUnavailable, "its worker is gone")); });
  }
}

void NodeManager::actor_created(const ActorId& id, int64_t epoch,
                                const proto::CreateActorReply& reply) {
  const HeadCalls::Unheard unheard = requests_->head_calls().actor_created(id, epoch, reply);
  if (unheard.started)
    head_->send_reliably(&proto::HeadService::Stub::ReportActorStarted, *unheard.started);
  if (unheard.died) actor_died(*unheard.died);
}

void NodeManager::actor_died(const proto::ActorDied& died) {
  head_->send_reliably(&proto::HeadService::Stub::ReportActorDied, died);
}

void NodeManager::bundles_prepared(const GroupId& group, int64_t epoch,
                                   const proto::PrepareBundlesReply& reply) {
  requests_->head_calls().bundles_prepared(group, epoch, reply);
}

void NodeManager::worker_died(const WorkerId& id, const proto::ExitInfo& info) {
  bool expected = info.kind() == proto::ExitInfo::INTENTIONAL ||
                  info.kind() == proto::ExitInfo::JOB_FINISHED ||
                  info.kind() == proto::ExitInfo::OUT_OF_SCOPE;
  if (!expected && !stopping_) RT_INFO("{}", info.message());
  requests_->exit_waits().ended(id);
  dead_workers_->add(id);
}

Status NodeManager::start_job(const proto::SubmittedJob& job,
                              std::map<std::string, std::string> env) {
  if (stopping_) return make_error(Code::kUnavailable, "the node is leaving the cluster");
  Result<std::vector<std::string>> gpus = Error{};
  drive([&](NodeCore& core, Now now) {
    gpus = core.hold_for_job(job.submission_id(),
                             ResourceSet::from_proto(job.entrypoint_resources()), now);
  });
  if (!gpus) return gpus.error();
  if (!gpus->empty()) env["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(*gpus, ","));
  Status started = jobs_->start(job, env);
  if (!started) drive([&](NodeCore& core, Now now) { core.release_job(job.submission_id(), now); });
  return started;
}

}  // namespace rt::node
