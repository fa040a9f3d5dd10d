// The RPC services of a worker: for other workers (WorkerService), its node-managers
// (NodeClientService) and the head (HeadClientService). The methods run on the loop; each only
// unpacks its request and hands it to the part that it is for.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/proto/worker.pb.h"
#include "common/rpc/server.h"
#include "worker/core/scheduling_class.h"
#include "worker/service/lock.h"
#include "worker/service/process_services.h"
#include "worker/service/shared.h"

namespace rt::worker {

class Execution;
class LeaseClient;
class Listing;
class NodeDirectory;
class Notices;
class Objects;
class PeerLinks;
class Submission;

class WorkerRpc final : public proto::WorkerService {
 public:
  // All of these must outlive this object.
  WorkerRpc(Objects& objects, Submission& submission, const Listing& listing)
      : objects_(objects), submission_(submission), listing_(listing) {}
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  void GetObject(Controller*, const proto::ObjectStatusRequest*, proto::ObjectStatus*,
                 Closure*) override REQUIRES(worker_mutex);
  void AddBorrower(Controller*, const proto::BorrowRequest*, proto::BorrowReply*, Closure*) override
      REQUIRES(worker_mutex);
  void RemoveBorrower(Controller*, const proto::ReturnBorrow*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void AddObjectLocation(Controller*, const proto::AddLocation*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void Cancel(Controller*, const proto::CancelTask*, proto::CancelReply*, Closure*) override
      REQUIRES(worker_mutex);
  void ListObjects(Controller*, const proto::Empty*, proto::ObjectRecords*, Closure*) override
      REQUIRES(worker_mutex);
  void ListTasks(Controller*, const proto::Empty*, proto::TaskRecords*, Closure*) override
      REQUIRES(worker_mutex);

 private:
  Objects& objects_;
  Submission& submission_;
  const Listing& listing_;
};

// News of the head, for whoever they concern.
using HeadEventHandler = std::function<void(const proto::HeadEvent&)>;

// Handles what one node-manager sends.
class NodeEvents final : public proto::NodeClientService {
 public:
  // All references must outlive this object.
  NodeEvents(NodeKey node, LeaseClient& leases, NodeDirectory& nodes, Notices& notices,
             Execution& execution, HeadEventHandler on_head_event)
      : node_(node),
        leases_(leases),
        nodes_(nodes),
        notices_(notices),
        execution_(execution),
        on_head_event_(std::move(on_head_event)) {}
  using Controller = google::protobuf::RpcController;
  using Closure = google::protobuf::Closure;
  void OnLeaseGrant(Controller*, const proto::LeaseGrant*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void OnLeaseRevoke(Controller*, const proto::LeaseRevoke*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void OnLeaseRedirect(Controller*, const proto::LeaseRedirect*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void OnLeaseNotice(Controller*, const proto::LeaseNotice*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void OnHeadEvent(Controller*, const proto::HeadEvent*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);
  void StartActor(Controller*, const proto::CreateActorRequest*, proto::CreateActorReply*,
                  Closure*) override REQUIRES(worker_mutex);
  void Exit(Controller*, const proto::KillWorkerRequest*, proto::Empty*, Closure*) override
      REQUIRES(worker_mutex);

 private:
  const NodeKey node_;
  LeaseClient& leases_;
  NodeDirectory& nodes_;
  Notices& notices_;
  Execution& execution_;
  const HeadEventHandler on_head_event_;
};

class HeadEvents final : public proto::HeadClientService {
 public:
  explicit HeadEvents(HeadEventHandler on_head_event) : on_head_event_(std::move(on_head_event)) {}
  void OnHeadEvent(google::protobuf::RpcController*, const proto::HeadEvent*, proto::Empty*,
                   google::protobuf::Closure*) override REQUIRES(worker_mutex);

 private:
  const HeadEventHandler on_head_event_;
};

// All services of this process, and the server to which others connect. Must outlive all
// connections.
class Services {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    NodeDirectory& nodes;
    PeerLinks& peers;
    Objects& objects;
    Submission& submission;
    LeaseClient& leases;
    Execution& execution;
    const Listing& listing;
    Notices& notices;
  };
  Services(const Parts& parts, HeadEventHandler on_head_event);

  // Offers on a connection what its peer may call: another worker or a tool, a node-manager (a nil
  // `node` means the local one), the head.
  void offer_to_peer(rpc::Connection& connection) REQUIRES(worker_mutex);
  void offer_to_node(const NodeKey& node, rpc::Connection& connection) REQUIRES(worker_mutex);
  void offer_to_head(rpc::Connection& connection) REQUIRES(worker_mutex) {
    connection.add_service(&head_);
  }

  // Accepts connections at the listening socket, which is closed in any case.
  Status serve(int fd) REQUIRES(worker_mutex);
  // This process is named otherwise to peers that connect from here on.
  void identity_changed() REQUIRES(worker_mutex);
  void close() REQUIRES(worker_mutex) { server_.reset(); }

 private:
  const Parts parts_;
  const HeadEventHandler on_head_event_;
  ProcessServices process_;
  WorkerRpc worker_;
  HeadEvents head_;
  std::unordered_map<NodeKey, std::unique_ptr<NodeEvents>> nodes_ GUARDED_BY(worker_mutex);
  std::unique_ptr<rpc::Server> server_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
