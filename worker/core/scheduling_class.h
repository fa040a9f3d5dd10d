// Tasks that any of the same workers can run, and the leases of those workers. Its data belongs to
// Submitter.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/core/group_demand.h"
#include "worker/core/task.h"
#include "worker/core/task_channel.h"

namespace rt::worker {

// A node-manager that this owner asks for leases. Nil means the local one.
using NodeKey = NodeId;
struct Lease;

struct SchedulingClass {
  uint64_t id = 0;
  ResourceSet resources;
  proto::SchedulingStrategy strategy = proto::DEFAULT;
  // Nodes take turns (scheduling::Policy), so that the next task needs a lease of another node.
  bool takes_turns = false;
  std::string runtime_env;
  proto::Language language = proto::LANGUAGE_PYTHON;
  std::unique_ptr<const proto::NodeConstraint> constraint;  // Null means any node.

  std::deque<Task*> queue;  // Ready to run, not pushed.
  std::vector<Lease*> leases;
  int64_t unstarted_in_flight = 0;  // Pushed behind the first task of each lease.
  int local_want = 0;               // Demand last sent to the local node-manager.
  struct Remote {
    int want = 0;
    int64_t until_us = 0;  // Withdrawn if nothing is granted by then.
  };
  std::map<NodeKey, Remote> remotes;

  // The demand of tasks in a placement group, instead of local_want and remotes; null for tasks in
  // none.
  std::unique_ptr<GroupDemand> group;
  int64_t users = 0;  // See Submitter::scheduling_class().
};

struct Lease {
  enum class State { kConnecting, kReady, kBroken };
  uint64_t key = 0;  // Unique in this owner.
  uint64_t id = 0;   // Assigned by the node-manager.
  NodeKey node;      // The node whose node-manager granted it.
  SchedulingClass* owner_class = nullptr;
  proto::WorkerAddress worker;
  int pid = 0;
  std::vector<std::string> gpu_ids;  // GPUs assigned to its tasks.
  State state = State::kConnecting;
  std::deque<Task*> in_flight;  // In the order pushed.
  int64_t in_flight_us = 0;     // Estimated duration of all of them.
  uint32_t next_seq = 1;
  int64_t idle_since_us = 0;
  bool revoked = false;
  // The worker itself gives up the lease, because it takes no more tasks (max_calls).
  bool leaving = false;
  bool take_back_pending = false;
  // The sequence number of the first task in flight, as tick() last saw it, and since when.
  // Sampling it saves reading the clock for each task.
  uint32_t watched_seq = 0;
  int64_t watched_since_us = 0;
  // The first task in flight runs for too long, so nothing is sent behind it.
  bool overdue = false;
  TaskChannel* channel = nullptr;  // To its worker; null unless the lease is ready.
};

// Classes with equal keys are one.
std::string class_key(const proto::TaskTemplate& spec);
// A class without tasks and leases.
std::unique_ptr<SchedulingClass> make_class(const proto::TaskTemplate& spec, uint64_t id);

}  // namespace rt::worker
