// The RPC services of a worker: for other workers (WorkerService), its node-managers
// (NodeClientService) and the head (HeadClientService). The methods run on the loop, with Impl's
// mutex held; each only unpacks its request and calls Impl.
#pragma once

#include <memory>
#include <unordered_map>

#include "worker/service/impl.h"

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
  void OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent* event, proto::Empty*,
                   google::protobuf::Closure* done) override {
    impl_.on_head_event(*event);
    done->Run();
  }

 private:
  Worker::Impl& impl_;
};

// Owns the services of all node-manager connections. A nil key means the local one.
class NodeClient {
 public:
  explicit NodeClient(Worker::Impl& impl) : impl_(impl), head_(impl) {}
  NodeEvents* for_node(const NodeKey& node) {
    auto& slot = nodes_[node];
    if (!slot) slot = std::make_unique<NodeEvents>(impl_, node);
    return slot.get();
  }
  HeadEvents* for_head() { return &head_; }

 private:
  Worker::Impl& impl_;
  HeadEvents head_;
  std::unordered_map<NodeKey, std::unique_ptr<NodeEvents>> nodes_;
};

}  // namespace rt::worker
