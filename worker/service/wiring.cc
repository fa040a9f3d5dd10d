// Makes the parts of a worker, and says which of them calls which.
#include <utility>

#include "worker/service/executing_task.h"
#include "worker/service/impl.h"

namespace rt::worker {

Worker::Impl::Impl(Options options)
    : shared(std::move(options)),
      notices(shared.options, shared.context,
              [this] {
                assert_locked();
                pump.wake_background();
              }),
      pump({shared, objects, notices}, pump_hooks()),
      services({shared, nodes, peers, objects, submission, leases, execution, listing, notices},
               [this](const proto::HeadEvent& event) {
                 assert_locked();
                 on_head_event(event);
               }),
      nodes(shared.loop, shared.options, shared.context, shared.self, node_hooks()),
      head(shared.loop, shared.options, shared.context, shared.self, shared.stopping, notices,
           head_hooks()),
      peers(shared.loop, shared.options, shared.context, shared.self, peer_hooks()),
      head_questions({shared, pump, head}),
      groups({shared, pump, head, submission, leases, execution, notices}),
      objects({shared, pump, peers, notices}, object_hooks()),
      gets({shared, pump, peers, objects}),
      travelling_refs({shared, objects}),
      submission({shared, pump, nodes, peers, objects, streams, groups, leases, actor_client,
                  recorder, notices},
                 [this](int64_t for_us) {
                   assert_locked();
                   return execution.waiting_for_turn(for_us);
                 }),
      streams(objects, submission.results(), pump, shared.stopping),
      leases(shared.options, shared.context, nodes, peers, shared.loop, submission, groups.view()),
      recorder(shared.options, shared.context, shared.loop, nodes.local()),
      actor_client({shared, pump, head, peers, objects, submission, groups, recorder, notices}),
      execution({shared, pump, nodes, peers, objects, groups, submission.cancellation(),
                 submission.waiting(), leases, recorder},
                execution_hooks()),
      listing({shared, objects, submission, leases, actor_client, groups, execution}) {}

Pump::Hooks Worker::Impl::pump_hooks() {
  Pump::Hooks hooks;
  hooks.turned = [this] {
    assert_locked();
    execution.frames().release();
    leases.arm();
  };
  hooks.current_task = [] { return t_current_task ? &t_current_task->progress() : nullptr; };
  hooks.take_signal = [this] {
    assert_locked();
    return execution.departure().take_signal();
  };
  hooks.set_blocked = [this](bool blocked) {
    assert_locked();
    execution.set_blocked(blocked);
  };
  return hooks;
}

NodeDirectory::Hooks Worker::Impl::node_hooks() {
  NodeDirectory::Hooks hooks;
  hooks.opened = [this](const NodeKey& node, rpc::Connection& connection) {
    assert_locked();
    services.offer_to_node(node, connection);
  };
  hooks.gone = [this](const NodeKey& node) {
    assert_locked();
    leases.submitter().node_gone(node);
  };
  return hooks;
}

HeadConnection::Hooks Worker::Impl::head_hooks() {
  HeadConnection::Hooks hooks;
  hooks.opened = [this](const std::shared_ptr<rpc::Connection>& connection) {
    assert_locked();
    services.offer_to_head(*connection);
    groups.head_is_back();
  };
  hooks.needed = [this] {
    assert_locked();
    return groups.need_head();
  };
  hooks.renewed = [this] {
    assert_locked();
    actor_client.subscriptions_renewed();
  };
  return hooks;
}

PeerLinks::Hooks Worker::Impl::peer_hooks() {
  PeerLinks::Hooks hooks;
  hooks.opened = [this](const std::shared_ptr<Link>& link) {
    assert_locked();
    link_opened(link);
  };
  hooks.closed = [this](const std::shared_ptr<Link>& link, bool gone) {
    assert_locked();
    link_closed(link, gone);
  };
  return hooks;
}

Objects::Hooks Worker::Impl::object_hooks() {
  Objects::Hooks hooks;
  hooks.ask_exit = [this](const proto::WorkerAddress& worker,
                          std::function<void(proto::ExitInfo)> done) {
    assert_locked();
    leases.ask_exit(worker, NodeKey::from_binary(worker.node_id()), std::move(done));
  };
  hooks.borrows_confirmed = [this] {
    assert_locked();
    execution.frames().release();
  };
  hooks.actor_out_of_scope = [this](const ActorId& actor) {
    assert_locked();
    actor_client.out_of_scope(actor);
  };
  hooks.stream_dropped = [this](const TaskId& task) {
    assert_locked();
    streams.dropped(task);
  };
  return hooks;
}

Execution::Hooks Worker::Impl::execution_hooks() {
  Execution::Hooks hooks;
  hooks.adopt_job = [this](const proto::JobConfig& job) {
    assert_locked();
    adopt_job(job);
  };
  hooks.is_needed = [this] {
    assert_locked();
    return is_needed();
  };
  return hooks;
}

}  // namespace rt::worker
