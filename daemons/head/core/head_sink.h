// The interface through which the core's decisions leave. The service turns them into I/O, unit
// tests record them, the simulator delivers them.
#pragma once

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/head/core/records.h"
#include "daemons/head/core/types.h"

namespace rt::head {

// The core calls these methods from its one thread. No method may call back into the core before
// it returns; answers arrive later as events of HeadCore.
class HeadSink {
 public:
  virtual ~HeadSink() = default;

  // Writes the batch. HeadCore::persisted(id, ...) answers, in the order of the calls.
  virtual void persist(uint64_t id, Batch batch) = 0;
  // HeadCore::create_actor_answered() answers, with kUnavailable if the connection broke.
  virtual void create_actor(const NodeLink& node, const proto::CreateActorRequest& request) = 0;
  virtual void kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) = 0;
  // HeadCore::prepare_bundles_answered() answers, with kUnavailable if the connection broke.
  virtual void prepare_bundles(const NodeLink& node,
                               const proto::PrepareBundlesRequest& request) = 0;
  // The call is repeated when the node registers anew, so no answer is needed.
  virtual void return_bundles(const NodeLink& node, const proto::ReturnBundlesRequest& request) = 0;
  // HeadCore::start_job_answered() and stop_job_answered() answer.
  virtual void start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) = 0;
  virtual void stop_job(const NodeLink& node, const std::string& submission_id) = 0;
  // The head has deleted the job's record, so the node deletes its log.
  virtual void remove_job_log(const NodeLink& node, const std::string& submission_id) = 0;

  // Tries to connect to the node's TCP port. HeadCore::probe_answered() answers.
  virtual void probe(const NodeId& node, const std::string& ip, int port) = 0;

  // Sends an event to a subscriber or node-manager; a connection that has broken is ignored.
  virtual void push(ConnId conn, const proto::HeadEvent& event) = 0;
  // Closes the connection a moment later, so that the last answers leave. Calls over it fail with
  // `why`.
  virtual void close(ConnId conn, const Error& why) = 0;
  // Nodes joined or left the cluster.
  virtual void membership_changed() {}
  // Writes a line (a death, a restart, a job) to the operator's log.
  virtual void log(const std::string& text) { (void)text; }
};

}  // namespace rt::head
