#include "worker/service/services.h"

#include <algorithm>
#include <vector>

#include "common/base/clock.h"
#include "worker/service/execution.h"
#include "worker/service/lease_client.h"
#include "worker/service/listing.h"
#include "worker/service/node_directory.h"
#include "worker/service/notices.h"
#include "worker/service/objects.h"
#include "worker/service/peer_links.h"
#include "worker/service/submission.h"

namespace rt::worker {
namespace {

std::vector<ObjectId> valid_ids(const google::protobuf::RepeatedPtrField<std::string>& raw) {
  std::vector<ObjectId> ids;
  for (const auto& bytes : raw) {
    if (ObjectId::is_valid(bytes)) ids.push_back(ObjectId::from_binary(bytes));
  }
  return ids;
}

}  // namespace

void WorkerRpc::GetObject(Controller*, const proto::ObjectStatusRequest* request,
                          proto::ObjectStatus* reply, Closure* done) {
  objects_.serve(*request, [reply, done](const proto::ObjectStatus& status) {
    *reply = status;
    done->Run();
  });
}

void WorkerRpc::AddBorrower(Controller*, const proto::BorrowRequest* request,
                            proto::BorrowReply* reply, Closure* done) {
  WorkerId borrower = WorkerId::from_binary(request->borrower().worker_id());
  for (const ObjectId& id : valid_ids(request->object_ids())) {
    if (!objects_.refs().add_borrower(id, borrower)) reply->add_unknown(id.binary());
  }
  done->Run();
}

void WorkerRpc::RemoveBorrower(Controller*, const proto::ReturnBorrow* request, proto::Empty*,
                               Closure* done) {
  WorkerId borrower = WorkerId::from_binary(request->borrower_worker_id());
  const int n = std::min(request->object_ids_size(), request->counts_size());
  for (int i = 0; i < n; ++i) {
    if (ObjectId::is_valid(request->object_ids(i)))
      objects_.refs().remove_borrower(ObjectId::from_binary(request->object_ids(i)), borrower,
                                      request->counts(i));
  }
  done->Run();
}

void WorkerRpc::AddObjectLocation(Controller*, const proto::AddLocation* request, proto::Empty*,
                                  Closure* done) {
  ObjectEntry* entry = ObjectId::is_valid(request->object_id())
                           ? objects_.refs().find(ObjectId::from_binary(request->object_id()))
                           : nullptr;
  NodeId node = NodeId::from_binary(request->node_id());
  store::Location where{node, request->ip(), request->port(), 0};
  if (!entry || !entry->in_store()) {
    // The object was freed in the meantime, so the late copy is freed, too.
    if (objects_.store())
      objects_.store()->free({ObjectId::from_binary(request->object_id())}, {where});
  } else {
    bool known = false;
    auto& locations = entry->mutable_details().locations;
    for (const auto& location : locations) known |= location.node == node;
    if (!known && locations.size() < 4096)
      locations.push_back({node, request->ip(), request->port()});
  }
  done->Run();
}

void WorkerRpc::Cancel(Controller* controller, const proto::CancelTask* request,
                       proto::CancelReply* reply, Closure* done) {
  // The request comes from a borrower of the result. While a task is pending, all its returns have
  // entries, so the first one is enough to find it.
  Task* task = TaskId::is_valid(request->task_id())
                   ? Submission::producer_of(objects_.refs().find(
                         make_object_id(TaskId::from_binary(request->task_id()), 1)))
                   : nullptr;
  reply->set_found(task != nullptr);
  if (task) {
    if (Status sent =
            submission_.cancellation().cancel_task(task, request->force(), request->recursive());
        !sent)
      rpc::server_call(controller).fail(sent.error());
  }
  done->Run();
}

void WorkerRpc::ListObjects(Controller*, const proto::Empty*, proto::ObjectRecords* reply,
                            Closure* done) {
  listing_.objects(reply);
  done->Run();
}

void WorkerRpc::ListTasks(Controller*, const proto::Empty*, proto::TaskRecords* reply,
                          Closure* done) {
  listing_.tasks(reply);
  done->Run();
}

void NodeEvents::OnLeaseGrant(Controller*, const proto::LeaseGrant* grant, proto::Empty*,
                              Closure* done) {
  leases_.submitter().lease_granted(node_, grant->class_id(), grant->lease_id(), grant->worker(),
                                    grant->pid(), system_now(),
                                    {grant->gpu_ids().begin(), grant->gpu_ids().end()});
  done->Run();
}

void NodeEvents::OnLeaseRevoke(Controller*, const proto::LeaseRevoke* revoke, proto::Empty*,
                               Closure* done) {
  std::vector<uint64_t> ids(revoke->lease_ids().begin(), revoke->lease_ids().end());
  leases_.submitter().leases_revoked(node_, ids);
  done->Run();
}

void NodeEvents::OnLeaseRedirect(Controller*, const proto::LeaseRedirect* redirect, proto::Empty*,
                                 Closure* done) {
  NodeId node = NodeId::from_binary(redirect->node().node_id());
  if (!node.is_nil()) {
    nodes_.add(redirect->node());
    leases_.submitter().redirected(node_, redirect->class_id(), nodes_.key_of(node),
                                   redirect->count(), redirect->answer(), system_now());
  }
  done->Run();
}

void NodeEvents::OnLeaseNotice(Controller*, const proto::LeaseNotice* notice, proto::Empty*,
                               Closure* done) {
  if (notice->fatal()) {
    leases_.submitter().class_failed(
        notice->class_id(),
        make_error(notice->code() ? static_cast<Code>(notice->code()) : Code::kInternal,
                   notice->message()));
  } else if (notice->code() == static_cast<int>(Code::kLocalNodeDied)) {
    notices_.set_last_words(notice->message());
  } else if (!notice->message().empty()) {
    notices_.warn(notice->message());
  }
  done->Run();
}

void NodeEvents::OnHeadEvent(Controller*, const proto::HeadEvent* event, proto::Empty*,
                             Closure* done) {
  on_head_event_(*event);
  done->Run();
}

void NodeEvents::StartActor(Controller*, const proto::CreateActorRequest* request,
                            proto::CreateActorReply* reply, Closure* done) {
  execution_.start_actor(*request, [reply, done](const proto::CreateActorReply& answer) {
    *reply = answer;
    done->Run();
  });
}

void NodeEvents::Exit(Controller*, const proto::KillWorkerRequest* request, proto::Empty*,
                      Closure* done) {
  // The request ends with the call, which is answered before the process may end.
  const bool graceful = request->graceful();
  const bool killed = request->why() == proto::ExitInfo::KILLED_BY_USER && !graceful;
  done->Run();
  // No code of the user may run any more: neither atexit handlers nor destructors.
  if (killed) execution_.end_process(1);
  execution_.departure().leaving().asked(graceful);
}

void HeadEvents::OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent* event,
                             proto::Empty*, google::protobuf::Closure* done) {
  on_head_event_(*event);
  done->Run();
}

Services::Services(const Parts& parts, HeadEventHandler on_head_event)
    : parts_(parts),
      on_head_event_(std::move(on_head_event)),
      process_(parts.shared.loop, parts.shared.options.commands),
      worker_(parts.objects, parts.submission, parts.listing),
      head_(on_head_event_) {}

void Services::offer_to_peer(rpc::Connection& connection) {
  connection.add_service(&worker_);
  process_.offer(connection);
}

void Services::offer_to_node(const NodeKey& node, rpc::Connection& connection) {
  auto& events = nodes_[node];
  if (!events) {
    events = std::make_unique<NodeEvents>(node, parts_.leases, parts_.nodes, parts_.notices,
                                          parts_.execution, on_head_event_);
  }
  connection.add_service(events.get());
}

Status Services::serve(int fd) {
  rpc::ServerOptions options;
  options.identity = parts_.shared.self.identity();
  options.hello_timeout_us = parts_.shared.settings().hello_timeout_ms * 1000;
  options.max_connections = static_cast<int>(parts_.shared.settings().max_connections);
  options.on_connection = [this](const std::shared_ptr<rpc::Connection>& c) {
    assert_locked();
    parts_.peers.adopt(c, true);
  };
  server_ = std::make_unique<rpc::Server>(parts_.shared.loop, std::move(options));
  return server_->listen_fd(fd);
}

void Services::identity_changed() {
  if (server_) server_->set_identity(parts_.shared.self.identity());
}

}  // namespace rt::worker
