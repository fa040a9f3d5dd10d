// The RPC services of a worker: for other workers (WorkerService), its node-managers
// (NodeClientService) and the head (HeadClientService). The methods run on the loop, with Impl's
// mutex held; each only unpacks its request and calls Impl.
#pragma once

#include <memory>
#include <unordered_map>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "common/rpc/server.h"
#include "worker/core/scheduling_class.h"
#include "worker/service/process_services.h"
#include "worker/worker.h"

namespace rt::worker {

class WorkerRpc final : public proto::WorkerService {
 public:
  explicit WorkerRpc(Worker::Impl& impl) : impl_(impl) {}
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  void GetObject(Controller*, const proto::ObjectStatusRequest*, proto::ObjectStatus*,
                 Closure*) override;
  void AddBorrower(Controller*, const proto::BorrowRequest*, proto::BorrowReply*,
                   Closure*) override;
  void RemoveBorrower(Controller*, const proto::ReturnBorrow*, proto::Empty*, Closure*) override;
  void AddObjectLocation(Controller*, const proto::AddLocation*, proto::Empty*, Closure*) override;
  void Cancel(Controller*, const proto::CancelTask*, proto::CancelReply*, Closure*) override;
  void ListObjects(Controller*, const proto::Empty*, proto::ObjectRecords*, Closure*) override;
  void ListTasks(Controller*, const proto::Empty*, proto::TaskRecords*, Closure*) override;

 private:
  Worker::Impl& impl_;
};

// Handles what one node-manager sends.
class NodeEvents final : public proto::NodeClientService {
 public:
  NodeEvents(Worker::Impl& impl, NodeKey node) : impl_(impl), node_(node) {}
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  void OnLeaseGrant(Controller*, const proto::LeaseGrant*, proto::Empty*, Closure*) override;
  void OnLeaseRevoke(Controller*, const proto::LeaseRevoke*, proto::Empty*, Closure*) override;
  void OnLeaseRedirect(Controller*, const proto::LeaseRedirect*, proto::Empty*, Closure*) override;
  void OnLeaseNotice(Controller*, const proto::LeaseNotice*, proto::Empty*, Closure*) override;
  void OnHeadEvent(Controller*, const proto::HeadEvent*, proto::Empty*, Closure*) override;
  void StartActor(Controller*, const proto::CreateActorRequest*, proto::CreateActorReply*,
                  Closure*) override;
  void Exit(Controller*, const proto::KillWorkerRequest*, proto::Empty*, Closure*) override;

 private:
  Worker::Impl& impl_;
  const NodeKey node_;
};

class HeadEvents final : public proto::HeadClientService {
 public:
  explicit HeadEvents(Worker::Impl& impl) : impl_(impl) {}
  void OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent*, proto::Empty*,
                   google::protobuf::Closure*) override;

 private:
  Worker::Impl& impl_;
};

// All services of this process, and the server to which others connect. Must outlive all
// connections.
class Services {
 public:
  // `impl` must outlive this object.
  explicit Services(Worker::Impl& impl);

  // Offers on a connection what its peer may call: another worker or a tool, a node-manager (a nil
  // `node` means the local one), the head.
  void offer_to_peer(rpc::Connection& connection);
  void offer_to_node(const NodeKey& node, rpc::Connection& connection);
  void offer_to_head(rpc::Connection& connection) { connection.add_service(&head_); }

  // Accepts connections at the listening socket, which is closed in any case.
  Status serve(int fd);
  // This process is named otherwise to peers that connect from here on.
  void identity_changed();
  void close() { server_.reset(); }

 private:
  Worker::Impl& impl_;
  ProcessServices process_;
  WorkerRpc worker_;
  HeadEvents head_;
  std::unordered_map<NodeKey, std::unique_ptr<NodeEvents>> nodes_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace rt::worker
