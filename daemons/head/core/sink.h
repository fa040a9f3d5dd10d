// Where the core's decisions go. The service turns them into I/O, tests record them, the simulator
// delivers them.
#pragma once

#include "common/proto/head.pb.h"
#include "common/proto/node_manager.pb.h"
#include "daemons/head/core/records.h"
#include "daemons/head/core/types.h"

namespace rt::head {

// No method may call back into the core before it returns.
class HeadSink {
 public:
  virtual ~HeadSink() = default;

  // Answered by HeadCore::persisted(id, ...), in the order of the calls.
  virtual void persist(uint64_t id, Batch batch) = 0;
  // Answered by create_actor_answered(), kUnavailable when the connection broke.
  virtual void create_actor(const NodeLink& node, const proto::CreateActorRequest& request) = 0;
  virtual void kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) = 0;
  // Answered by start_job_answered() and stop_job_answered().
  virtual void start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) = 0;
  virtual void stop_job(const NodeLink& node, const std::string& submission_id) = 0;
  // Its record is gone.
  virtual void remove_job_log(const NodeLink& node, const std::string& submission_id) = 0;

  // Whether something listens there, at the node's front door. Answered by
  // HeadCore::probe_answered().
  virtual void probe(const NodeId& node, const std::string& ip, int port) = 0;

  virtual void push(ConnId conn, const proto::HeadEvent& event) = 0;
  virtual void close(ConnId conn, const Error& why) = 0;
  // HeadCore::timer() is due at this steady time; replaces the earlier wish.
  virtual void set_timer(int64_t at_us) = 0;
  // Nodes came or went.
  virtual void membership_changed() {}
  // A line for the operator's log: deaths, restarts, jobs.
  virtual void log(const std::string& text) { (void)text; }
};

}  // namespace rt::head
