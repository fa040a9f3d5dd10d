#include "daemons/node_manager/core/registration.h"

namespace rt::node {

void fill_node(const NodeCore& core, const proto::ResourceReport& report, proto::Node* node) {
  const NodeIdentity& me = core.view().identity();
  node->set_node_id(me.id.binary());
  node->set_ip(me.ip);
  node->set_port(me.port);
  core.view().resources().total().to_proto(node->mutable_total());
  *node->mutable_available() = report.available();
  *node->mutable_reserved() = report.reserved();
  *node->mutable_reserved_used() = report.reserved_used();
  node->set_incarnation(report.incarnation());
  node->set_problem(report.problem());
  node->set_alive(true);
  if (core.view().drain()) *node->mutable_drain() = *core.view().drain();
}

void fill_holdings(const NodeCore& core, proto::RegisterNodeRequest* request) {
  for (const auto& [id, actor] : core.view().actors()) {
    const Worker* worker = core.view().worker(actor.worker);
    if (!actor.worker.is_nil() && (!worker || worker->state != WorkerState::kActor)) continue;
    proto::ActorInfo* info = request->add_live_actors();
    *info->mutable_spec() = actor.request.spec();
    info->set_num_restarts(actor.request.num_restarts());
    info->set_epoch(actor.request.epoch());
    info->set_bundle_index(actor.room.index);
    // Otherwise a report of its start follows, or of its failure. A head that did not hear of it
    // would start the actor elsewhere as well.
    info->set_state(proto::ACTOR_PENDING);
    if (actor.state != HostedActor::State::kAlive) continue;
    info->set_state(proto::ACTOR_ALIVE);
    *info->mutable_address() = core.view().workers().address_of(*worker);
    info->set_pid(worker->pid);
  }
  proto::ProcessesReply processes;
  core.view().workers().fill_processes(&processes);
  for (const proto::ProcessInfo& process : processes.processes()) {
    if (process.alive() || process.actor_id().empty()) continue;
    proto::EndedActor* ended = request->add_ended_actors();
    ended->set_actor_id(process.actor_id());
    *ended->mutable_death() = process.exit();
    // They may be large, and the head got them when it was told of the end.
    ended->mutable_death()->clear_log_tail();
    ended->mutable_death()->clear_creation_error();
  }
  core.view().bundles().fill(request->mutable_bundles());
}

}  // namespace rt::node
