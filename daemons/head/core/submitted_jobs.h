// Jobs submitted with `rayctl job submit`: each is a driver process that a node-manager runs.
//
// PENDING (waits for a node with what the entrypoint asks for, or was sent to one) -> RUNNING ->
// SUCCEEDED | FAILED | STOPPED. Terminal states are final. The entrypoint's resources are held by
// its node-manager: the head picks a node that says it has them, and looks again when that one says
// otherwise.
#pragma once

#include <deque>
#include <map>
#include <optional>
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
  explicit SubmittedJobs(Env env) : env_(env) {}

  void recover(const proto::SubmittedJob& job);

  // kInvalid, kAlreadyExists, kUnsupported (runtime environments), or what the disk said. Started
  // once it is durable.
  void submit(const proto::SubmitJobRequest& request, Now now, Reply<proto::SubmitJobReply> reply);
  Result<const proto::SubmittedJob*> find(const std::string& submission_id) const;
  const std::map<std::string, proto::SubmittedJob>& all() const { return jobs_; }
  // stopped = false when it had ended. The answer of one that runs comes from its node-manager.
  void stop(const std::string& submission_id, Now now, Reply<proto::StopJobReply> reply);
  // Its record goes, and its log where its node is connected. kNotFound, kInvalid: it has not
  // ended.
  void remove(const std::string& submission_id, Reply<proto::Empty> reply);
  // kInvalid: not that node's job.
  Status report(const NodeState& node, const proto::SubmittedJob& report, Now now);
  void start_answered(const std::string& submission_id, const NodeId& node, const Status& status,
                      Now now);
  void stop_answered(const std::string& submission_id, const Result<proto::StopJobReply>& reply);
  // Its driver connected.
  void link(const std::string& submission_id, const JobId& job);

  // A node can be used again, or for the first time: starts what waits, repeats what may have been
  // lost.
  void node_registered(NodeState& node, Now now);
  void node_lost(const NodeState& node, Now now);
  // After a restart of the head, once every known node is back or given up: fails what ran on nodes
  // not even recorded any more.
  void nodes_settled(Now now);
  void end_event();

  // Of those that wait for a node.
  void add_demands(std::vector<proto::Demand>* out) const;
  std::optional<std::string> record(const std::string& submission_id) const;
  void check_invariants() const;

 private:
  static bool terminal(const proto::SubmittedJob& job);
  // The one place that changes a status; false when the job has ended already.
  bool set_status(proto::SubmittedJob& job, const std::string& status, const std::string& message,
                  Now now);
  // Sends it to a node; one that finds none waits, and is looked at again after a while.
  void start(proto::SubmittedJob& job, Now now);
  NodeState* choose(const proto::SubmittedJob& job, Now now);
  void wait(proto::SubmittedJob& job, Now now);
  void look_again(Now now);
  void send_start(const proto::SubmittedJob& job, const NodeState& node);
  void remove_log(const proto::SubmittedJob& job);
  void persist(const proto::SubmittedJob& job);
  proto::SubmittedJob* mutable_find(const std::string& submission_id);

  Env env_;
  std::map<std::string, proto::SubmittedJob> jobs_;
  std::map<std::string, int> committing_;  // not durable yet: nobody may see them
  std::map<std::string, std::vector<Reply<proto::StopJobReply>>> stopping_;
  std::deque<std::string> ended_;
  std::map<std::string, std::map<NodeId, int64_t>>
      refused_;  // who had no room for it, until when that counts
  Timers::Id look_timer_ = 0;
};

}  // namespace rt::head
