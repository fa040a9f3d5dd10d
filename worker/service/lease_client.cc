#include "worker/service/lease_client.h"

#include "common/base/clock.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/client.h"
#include "worker/core/death.h"
#include "worker/core/lease_demand.h"
#include "worker/core/wire.h"
#include "worker/service/node_directory.h"
#include "worker/service/peer_links.h"
#include "worker/service/pump.h"
#include "worker/service/submission.h"

namespace rt::worker {

LeaseClient::LeaseClient(const Options& options, const Context& context, NodeDirectory& nodes,
                         PeerLinks& peers, net::Loop& loop, Submission& submission,
                         const GroupView& groups)
    : options_(options),
      context_(context),
      nodes_(nodes),
      peers_(peers),
      loop_(loop),
      submission_(submission),
      submitter_(*this, options.settings, &groups),
      tick_(loop, [this] {
        assert_locked();
        submitter_.tick(system_now());
        arm();
      }) {}

void LeaseClient::push_task(const Lease& lease, const Task& task) {
  Link& link = link_of(*lease.channel);
  submission_.write_task(link, task);
  // An idle worker is woken at once; a busy one gets the task with the next write.
  if (lease.in_flight.size() == 1 || link.connection->queued_bytes() > 8192)
    link.connection->flush();
}

void LeaseClient::take_back(const Lease& lease, int count) {
  Link& link = link_of(*lease.channel);
  std::string& out = link.connection->begin_flat(wire::kTakeBack);
  wire::Writer(out).fields(static_cast<uint32_t>(count));
  link.connection->end_flat();
  link.connection->flush();
}

void LeaseClient::write_gpus(Link& link, const std::vector<std::string>& names) {
  wire::Writer writer(link.connection->begin_flat(wire::kTasks));
  writer.fields(wire::kGpuRecord, static_cast<uint16_t>(names.size()));
  for (const std::string& name : names) writer.text(name);
  link.connection->end_flat();
  link.gpus_sent = !names.empty();
}

void LeaseClient::connect_lease(const Lease& lease) {
  uint64_t key = lease.key;
  peers_.with(lease.worker, [this, key](Result<std::shared_ptr<Link>> link) {
    assert_locked();
    const Lease* lease = submitter_.find_lease(key);
    if (!lease) return;
    if (!link) {
      submitter_.lease_broken(key);
      return;
    }
    (*link)->lease_key = key;
    submission_.announce_recording(**link);
    if (!lease->gpu_ids.empty() || (*link)->gpus_sent) write_gpus(**link, lease->gpu_ids);
    submitter_.lease_ready(key, **link, system_now());
  });
}

void LeaseClient::send_demand(const NodeKey& node, const SchedulingClass& c, int want,
                              int64_t backlog, const std::string& what, uint64_t last_answer) {
  proto::LeaseDemand demand = lease_demand(node, c, want, backlog, what);
  *demand.mutable_job() = options_.job_config;
  demand.mutable_job()->set_job_id(context_.job_id.binary());
  demand.set_last_answer(last_answer);
  nodes_.with(node, [this, node, demand](Result<std::shared_ptr<rpc::Connection>> connection) {
    assert_locked();
    if (!connection) {
      // The node has just died. The demand goes back to the local node-manager, or again to the
      // node of its bundle.
      if (!node.is_nil() && demand.want() != 0) nodes_.report_gone_soon(node);
      return;
    }
    rpc::notify(**connection, &proto::NodeManagerService::Stub::SetLeaseDemand, demand);
    (*connection)->flush();
  });
}

void LeaseClient::return_lease(const Lease& lease, bool worker_failed) {
  if (lease.channel) link_of(*lease.channel).lease_key = 0;
  proto::LeaseReturn note;
  note.set_lease_id(lease.id);
  note.set_worker_failed(worker_failed);
  note.set_worker_leaves(lease.leaving);
  returned_at_.insert(lease.node);
  nodes_.with(lease.node, [note](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (connection) rpc::notify(**connection, &proto::NodeManagerService::Stub::ReturnLease, note);
  });
}

void LeaseClient::ask_exit(const Lease& lease) {
  ask_exit(lease.worker, lease.node,
           [this, key = lease.key, pid = lease.pid](proto::ExitInfo info) {
             assert_locked();
             if (info.pid() == 0) info.set_pid(pid);
             submitter_.worker_exit(key, info);
           });
}

void LeaseClient::ask_exit(const proto::WorkerAddress& worker, const NodeKey& node,
                           std::function<void(proto::ExitInfo)> done) {
  proto::WorkerExitRequest request;
  request.set_worker_id(worker.worker_id());
  auto answer = [done = std::move(done), worker, node](Result<proto::WorkerExitReply> reply) {
    done(exit_as_told(reply, worker, node));
  };
  nodes_.with(node, [request, answer](Result<std::shared_ptr<rpc::Connection>> connection) {
    if (!connection) return answer(connection.error());
    rpc::call(**connection, &proto::NodeManagerService::Stub::GetWorkerExit, request, 5'000'000,
              answer);
  });
}

// Lets the node-manager kill a worker that does not end as it was told, because it is stopped or
// stuck.
void LeaseClient::end_worker_of(uint64_t lease_key, const TaskId& id) {
  constexpr int64_t kGraceUs = 1'000'000;
  loop_.run_after(kGraceUs, [this, lease_key, id] {
    assert_locked();
    const Lease* lease = submitter_.find_lease(lease_key);
    // Only the first task in flight can be running.
    if (!lease || lease->in_flight.empty() || lease->in_flight.front()->id != id) return;
    proto::KillWorkerRequest request;
    request.set_worker_id(lease->worker.worker_id());
    request.set_why(proto::ExitInfo::KILLED_BY_USER);
    request.set_message("its task was cancelled with force=True");
    nodes_.with(lease->node, [request](Result<std::shared_ptr<rpc::Connection>> connection) {
      if (!connection) return;
      rpc::notify(**connection, &proto::NodeManagerService::Stub::KillWorker, request);
      (*connection)->flush();
    });
  });
}

// Returns idle leases and waits until their nodes have told the head: a node-manager reports
// before it answers GetStats. A grant that was on its way arrives before that answer and is
// returned, so that its node is asked again.
Status LeaseClient::settle(WorkerLock& lock, Pump& pump) {
  constexpr int64_t kLimitUs = 3'000'000;
  int64_t deadline = steady_now_us() + kLimitUs;
  returned_at_.insert(NodeKey::nil());
  do {
    submitter_.return_idle_leases();
    std::set<NodeKey> asked;
    asked.swap(returned_at_);
    auto waiting = std::make_shared<size_t>(asked.size());
    for (const NodeKey& node : asked) {
      nodes_.with(node, [waiting](Result<std::shared_ptr<rpc::Connection>> connection) {
        if (!connection) {
          --*waiting;
          return;
        }
        rpc::call(**connection, &proto::NodeManagerService::Stub::GetStats, proto::Empty(),
                  kLimitUs, [waiting](Result<proto::NodeStats>) { --*waiting; });
      });
    }
    const Status told = pump.await_answer(lock, [&] { return *waiting == 0; }, deadline);
    if (!told && told.error().code != Code::kTimeout) return told;
  } while (!returned_at_.empty() && steady_now_us() < deadline);
  return {};
}

void LeaseClient::fail_task(Task* task, const proto::ErrorValue& error) {
  submission_.results().fail(task, error);
}

void LeaseClient::attempt_failed(const Task& task, const proto::ErrorValue& error) {
  submission_.results().attempt_failed(task, error);
}

}  // namespace rt::worker
