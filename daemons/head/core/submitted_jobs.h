// Jobs submitted with `rayctl job submit`. Each is a driver process that a node-manager runs.
//
// PENDING -> RUNNING -> SUCCEEDED | FAILED | STOPPED; the last three are final. A PENDING job
// waits for a node with the resources that its entrypoint needs, or has been sent to a node. That
// node's node-manager holds the entrypoint's resources: the head picks a node that reports them
// free, and picks again when the node refuses.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "daemons/head/core/cluster.h"
#include "daemons/head/core/timers.h"

namespace rt::head {

class SubmittedJobs {
 public:
  struct Env {
    const HeadOptions& options;
    HeadSink& sink;
    Journal& journal;
    Timers& timers;
    Cluster& cluster;
    Rng& rng;
  };
  explicit SubmittedJobs(Env env);
  ~SubmittedJobs();

  void recover(const proto::SubmittedJob& job);

  // Records the job and starts it once the record is durable. Fails with kInvalid, kAlreadyExists,
  // or the disk's error.
  void submit(const proto::SubmitJobRequest& request, Now now, Reply<proto::SubmitJobReply> reply);
  // Returns kNotFound for an unknown job and for one whose record is not durable yet.
  Result<const proto::SubmittedJob*> find(const std::string& submission_id) const;
  const std::map<std::string, proto::SubmittedJob>& all() const { return jobs_; }
  // Returns the jobs whose record is durable.
  proto::SubmittedJobsReply list() const;
  // Replies stopped = false when the job had ended. A job that waits for a node is stopped when its
  // record says so, or the disk's error is the reply. For a running job its node-manager's answer
  // is the reply; kUnavailable while that node is disconnected.
  void stop(const std::string& submission_id, Now now, Reply<proto::StopJobReply> reply);
  // Deletes the job's record, and its log if its node is connected. Fails with kNotFound, with
  // kInvalid when the job has not ended, or with the disk's error; the job is then there as before.
  void remove(const std::string& submission_id, Reply<proto::Empty> reply);
  // Takes a node-manager's report, and replies once it is durable: until then the node keeps it.
  // Fails with kNotFound, with kInvalid when the job does not belong to that node or the status is
  // unknown, or with the disk's error.
  void report(const NodeState& node, const proto::SubmittedJob& report, Now now,
              Reply<proto::Empty> reply);
  void start_answered(const std::string& submission_id, const NodeId& node, const Status& status,
                      Now now);
  void stop_answered(const std::string& submission_id, const Result<proto::StopJobReply>& reply);
  // Records the driver's job id once the driver has connected.
  void link(const std::string& submission_id, const JobId& job);

  // Starts waiting jobs, and sends starts again that may have been lost with the node's
  // connection. Fails running jobs of the node that are not among `here`, if it is given: nobody
  // will ever report their end.
  void node_registered(NodeState& node, const std::optional<std::set<std::string>>& here, Now now);
  void node_lost(const NodeState& node, Now now);
  // After a restart of the head, once every recorded node is back or given up: fails jobs whose
  // node is dead or not even recorded, and looks for nodes for those that wait.
  void nodes_settled(Now now);
  void end_event();

  // Adds the demands of jobs that wait for a node.
  void add_demands(std::vector<proto::Demand>* out) const;
  std::optional<std::string> record(const std::string& submission_id) const;
  // Whether the job is there and has not ended.
  bool lives(const std::string& submission_id) const;
  void check_invariants() const;

 private:
  static bool terminal(const proto::SubmittedJob& job);
  Result<proto::SubmittedJob*> reported(const NodeState& node, const proto::SubmittedJob& report);
  // The only place that changes a status. Returns false when the job has ended already.
  bool set_status(proto::SubmittedJob& job, const std::string& status, const std::string& message,
                  Now now);
  // Chooses a node for the job, and asks it once the record says so. If none fits, the job waits
  // and start() runs again after a while.
  void start(proto::SubmittedJob& job, Now now);
  void assigned(const std::string& submission_id, const Status& status, Now now);
  NodeState* choose(const proto::SubmittedJob& job, Now now);
  void wait(proto::SubmittedJob& job, Now now);
  void look_again(Now now);
  void send_start(const proto::SubmittedJob& job, const NodeState& node);
  void remove_log(const proto::SubmittedJob& job);
  void persist(const proto::SubmittedJob& job);
  proto::SubmittedJob* mutable_find(const std::string& submission_id);

  Env env_;
  std::map<std::string, proto::SubmittedJob> jobs_;
  // Jobs whose record is not durable yet; nobody may see them.
  std::map<std::string, int> committing_;
  // Jobs whose node is not on the disk yet, so that it has not been asked. Otherwise a head that is
  // restarted might ask another one as well.
  std::set<std::string> assigning_;
  std::map<std::string, std::vector<Reply<proto::StopJobReply>>> stopping_;
  std::deque<std::string> ended_;
  // For each job, the nodes that had no room for it, and until when (steady clock) they are
  // skipped.
  std::map<std::string, std::map<NodeId, int64_t>> refused_;
  Timers::Id look_timer_ = 0;
};

}  // namespace rt::head
