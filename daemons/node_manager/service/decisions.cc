#include "daemons/node_manager/service/decisions.h"

#include "common/base/log.h"

namespace rt::node {

void Decisions::grant(OwnerId id, const proto::LeaseGrant& grant) {
  WorkerId worker = WorkerId::from_binary(grant.worker().worker_id());
  if (const Worker* leased = node_->driver.core().view().worker(worker))
    node_->logs.set_job(worker, leased->job.binary());
  if (rpc::Connection* connection = node_->sessions.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseGrant, grant);
}

void Decisions::revoke(OwnerId id, const proto::LeaseRevoke& revoke) {
  if (rpc::Connection* connection = node_->sessions.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseRevoke, revoke);
}

void Decisions::redirect(OwnerId id, const proto::LeaseRedirect& redirect) {
  if (rpc::Connection* connection = node_->sessions.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseRedirect, redirect);
}

void Decisions::notice(OwnerId id, const proto::LeaseNotice& notice) {
  RT_WARN("{}", notice.message());
  if (!notice.job_id().empty()) {
    proto::HeadEvent event;
    proto::Notice& line = *event.add_notices();
    line.set_severity("warning");
    line.set_text(notice.message());
    line.set_job_id(notice.job_id());
    node_->head.send_oneway(&proto::HeadService::Stub::PublishLogs, event);
    return;
  }
  if (rpc::Connection* connection = node_->sessions.owner(id))
    rpc::notify(*connection, &proto::NodeClientService::Stub::OnLeaseNotice, notice);
}

void Decisions::spawn_worker(const WorkerId& id, const WorkerKind& kind) {
  node_->starter.spawn(id, kind);
}

void Decisions::kill_worker(const WorkerId& id) {
  RT_DEBUG("worker {} is killed", id.hex());
  node_->starter.kill(id);
}

void Decisions::ask_exit(const WorkerId& id, const proto::KillWorkerRequest& request) {
  if (rpc::Connection* connection = node_->sessions.process(id)) {
    rpc::call(*connection, &proto::NodeClientService::Stub::Exit, request, -1,
              [this, id, alive = alive_](Result<proto::Empty> heard) {
                if (*alive && heard && !stopped_)
                  node_->driver.drive([&](NodeCore& core, Now now) {
                    core.worker_leaves(id, NodeCore::Leaving::kHasHeard, now);
                  });
              });
  }
}

void Decisions::start_actor(const WorkerId& id, const proto::CreateActorRequest& request) {
  node_->logs.set_job(id, request.spec().job_id());
  ActorId actor = ActorId::from_binary(request.spec().actor_id());
  int64_t epoch = request.epoch();
  auto answer = [this, actor, epoch, alive = alive_](Result<proto::CreateActorReply> reply) {
    if (*alive && !stopped_)
      node_->driver.drive(
          [&](NodeCore& core, Now now) { core.actor_start_done(actor, epoch, reply, now); });
  };
  if (rpc::Connection* connection = node_->sessions.process(id)) {
    rpc::call(*connection, &proto::NodeClientService::Stub::StartActor, request, -1,
              std::move(answer));
  } else {
    loop_.post([answer] { answer(make_error(Code::kUnavailable, "its worker is gone")); });
  }
}

void Decisions::actor_created(const ActorId& id, int64_t epoch,
                              const proto::CreateActorReply& reply) {
  const HeadCalls::Unheard unheard = node_->requests.head_calls().actor_created(id, epoch, reply);
  if (unheard.started)
    node_->head.send_reliably(&proto::HeadService::Stub::ReportActorStarted, *unheard.started);
  if (unheard.died) actor_died(*unheard.died);
  if (unheard.refused)
    node_->head.send_reliably(&proto::HeadService::Stub::ReportActorDied, *unheard.refused,
                              HeadQueue::Until::kNextRegistration);
}

void Decisions::actor_died(const proto::ActorDied& died) {
  node_->head.send_reliably(&proto::HeadService::Stub::ReportActorDied, died);
}

void Decisions::bundles_prepared(const GroupId& group, int64_t epoch,
                                 const proto::PrepareBundlesReply& reply) {
  node_->requests.head_calls().bundles_prepared(group, epoch, reply);
}

void Decisions::worker_died(const WorkerId& id, const proto::ExitInfo& info) {
  bool expected = info.kind() == proto::ExitInfo::INTENTIONAL ||
                  info.kind() == proto::ExitInfo::JOB_FINISHED ||
                  info.kind() == proto::ExitInfo::OUT_OF_SCOPE;
  if (!expected && !stopped_) RT_INFO("{}", info.message());
  node_->requests.exit_waits().ended(id);
  node_->dead_workers.add(id);
}

void Decisions::resources_changed() { node_->reports.changed(); }

}  // namespace rt::node
