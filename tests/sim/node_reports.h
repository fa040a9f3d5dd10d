// A node's reports to its head besides its core's news: the entrypoints of submitted jobs, which it
// runs (models daemons/node_manager/process/job_processes and service/job_reports), lines of logs,
// and samples of its use.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "daemons/node_manager/core/node_core.h"
#include "tests/sim/node_head.h"
#include "tests/sim/world.h"

namespace rt::sim {

class NodeReports {
 public:
  template <class T>
  using Answer = Channel::Answer<T>;
  struct Environment {
    // Passes an event to the core of the node.
    std::function<void(const std::function<void(node::NodeCore&, Now)>&)> drive;
    // Process::after().
    std::function<void(int64_t delay_us, const char* what, std::function<void()>)> after;
  };
  // All of them outlive this object.
  NodeReports(World& world, const NodeId& node, NodeHead& head, Environment environment)
      : world_(world), node_(node), head_(head), environment_(std::move(environment)) {}

  // ---- requests of the head
  void start_job(const proto::SubmittedJob& job, const Answer<proto::Empty>& answer);
  proto::StopJobReply stop_job(const std::string& id);
  void remove_log(const std::string& id);

  void fill_jobs(proto::RegisterNodeRequest* request) const;
  void registered();
  // The node-manager ends, and the entrypoints with it.
  void node_ended();
  bool runs_jobs() const { return !running_.empty(); }

  // A line of a worker of the job, or without a job a notice of the node.
  void publish(const JobId& job, const std::string& text);
  void sample(int running);

 private:
  struct Running {
    proto::SubmittedJob info;
    bool stopping = false;
  };
  Status start(const proto::SubmittedJob& job);
  void finish(const std::string& id);
  void report(proto::SubmittedJob job);
  void acknowledge(const proto::SubmittedJob& report);

  World& world_;
  const NodeId& node_;
  NodeHead& head_;
  const Environment environment_;
  std::map<std::string, Running> running_;            // by submission id
  std::map<std::string, proto::SubmittedJob> ended_;  // the head has yet to take these ends
};

}  // namespace rt::sim
