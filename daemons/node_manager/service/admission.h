// Admits processes to the node, as core/admission_desk.h says, and tells them what they need to
// know of it. Threads: the loop's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "common/rpc/server.h"
#include "daemons/node_manager/core/admission_desk.h"
#include "daemons/node_manager/core/membership.h"
#include "daemons/node_manager/service/core_driver.h"
#include "daemons/node_manager/service/head_link.h"
#include "daemons/node_manager/service/options.h"
#include "daemons/node_manager/service/sessions.h"
#include "daemons/node_manager/service/store_link.h"

namespace rt::node {

class Admission {
 public:
  // All of them are used while the loop runs.
  struct Parts {
    CoreDriver& driver;
    Sessions& sessions;
    HeadLink& head;
    const Membership& membership;
    StoreLink* store;                             // null: a node without a store
    std::function<void(proto::Node*)> fill_node;  // describes this node
  };
  Admission(const NodeManagerOptions& options, Parts node);
  ~Admission() { *alive_ = false; }

  // Runs `done` when the reply is complete, or `call` has failed, possibly later.
  void ask(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request,
           proto::RegisterWorkerReply* reply, google::protobuf::Closure* done);
  // The node is registered at its head: those that wait are admitted.
  void open(const proto::RegisterNodeReply& registration);
  void stop() { desk_.stop(); }
  bool is_open() const { return desk_.is_open(); }
  const std::string& cluster_id() const { return cluster_id_; }  // empty before open()

  // ---- jobs of drivers
  // A connection has closed: if it was a driver's, the head is told to finish its job.
  void left(OwnerId owner);
  // Adds the jobs whose drivers are connected.
  void fill_jobs(proto::RegisterNodeRequest* request) const { desk_.fill_jobs(request); }

 private:
  void admit_worker(Session& session, rpc::ServerCall& call,
                    const proto::RegisterWorkerRequest& request, proto::RegisterWorkerReply* reply);
  void admit_driver(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request,
                    proto::RegisterWorkerReply* reply, google::protobuf::Closure* done);
  // `call` has failed if the node refuses the driver.
  void driver_joined(rpc::ServerCall& call, const proto::RegisterWorkerRequest& request, JobId job,
                     const std::string& ray_namespace, proto::RegisterWorkerReply* reply);
  // Tells the head. No job is nil.
  void finish_job(const JobId& job);
  void fill(proto::RegisterWorkerReply* reply) const;

  const NodeManagerOptions& options_;
  const Parts node_;
  std::string cluster_id_, dashboard_address_;
  AdmissionDesk desk_;
  std::vector<std::function<void()>> waiting_;  // calls, until open()
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rt::node
