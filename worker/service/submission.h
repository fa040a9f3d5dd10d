// Tasks out, on their way from the call to the frame in which they leave: their arguments, their
// returns, and what they wait for here. Submitter and ActorCalls decide where and when they run;
// Results has how they end.
//
// Functions that take the lock as an argument release it while they write large arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/core/task.h"
#include "worker/service/cancellation.h"
#include "worker/service/link.h"
#include "worker/service/lock.h"
#include "worker/service/results.h"
#include "worker/service/shared.h"
#include "worker/service/waiting.h"
#include "worker/worker.h"

namespace rt::worker {

class ActorClient;
class Groups;
class LeaseClient;
class NodeDirectory;
class Notices;
class Objects;
class PeerLinks;
class Pump;
class Recorder;
class Streams;

class Submission {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    NodeDirectory& nodes;
    PeerLinks& peers;
    Objects& objects;
    Streams& streams;
    Groups& groups;
    LeaseClient& leases;
    ActorClient& actors;
    Recorder& recorder;
    Notices& notices;
  };
  // `waiting_for_turn` is that of WaitingReport::Hooks.
  Submission(const Parts& parts, std::function<int64_t(int64_t for_us)> waiting_for_turn);

  Results& results() { return results_; }
  Cancellation& cancellation() { return cancellation_; }
  WaitingReport& waiting() { return waiting_; }

  // The first task gets the number after `unique`.
  void set_first_number(uint64_t unique) REQUIRES(worker_mutex) { last_number_ = unique; }

  Status submit(const Template* function, std::span<const Arg> args, std::vector<Ref>* returns)
      EXCLUDES(worker_mutex);

  // Returns the template of a spec that has passed check_spec_size(); always the same one.
  const Template* make_template(proto::TaskTemplate spec) REQUIRES(worker_mutex);
  // The number of a template that others own. It is never used again, because peers may remember
  // the template.
  uint32_t take_template_number() REQUIRES(worker_mutex);

  // The steps of a submission, for calls to actors, too.
  TaskPool& tasks() REQUIRES(worker_mutex) { return tasks_; }
  uint64_t next_number() REQUIRES(worker_mutex) { return ++last_number_; }
  Status build_args(WorkerLock& lock, Task& task, std::span<const Arg> args) REQUIRES(worker_mutex);
  void make_returns(Task& task, std::vector<Ref>* returns) REQUIRES(worker_mutex);
  // Calls `ready` once when the last unready argument has become ready, unless the task was dropped
  // before. False: all are ready, and `ready` is not called.
  bool wait_for_args(Task* task, std::function<void()> ready) REQUIRES(worker_mutex);
  // Appends the task to the connection's frame, preceded by its template and parent where the peer
  // does not have them.
  void write_task(Link& link, const Task& task) REQUIRES(worker_mutex);
  // Takes over a task that came back over `link`, because there is no room for its arguments, if it
  // can run where they lie; see arguments.h.
  bool move_to_arguments(const Link& link, Task* task) REQUIRES(worker_mutex);
  // A task with a template that is a copy for its placement group has ended.
  void copy_ended(const Template& copy) REQUIRES(worker_mutex);
  // Tells the peer, before the first task on a connection, whether this process records its
  // submissions.
  void announce_recording(Link& link) REQUIRES(worker_mutex);

  // Tasks that a driver submits outside of tasks have the driver's own task as their parent.
  TaskId parent_or_driver(const TaskId& parent) const;
  TaskId parent_of(const Task& task) const { return parent_or_driver(task.parent); }
  // The pending task that makes the object; null when there is none.
  static Task* producer_of(const ObjectEntry* entry);

 private:
  void task_ready(Task* task) REQUIRES(worker_mutex);
  // If an argument is an error, fails the task with it and returns true.
  bool args_failed(Task* task) REQUIRES(worker_mutex);
  // Tells the node-manager how many tasks and calls wait. False: there is no connection to it.
  bool report_waiting(int64_t for_arguments, int64_t for_actors) REQUIRES(worker_mutex);

  const Parts parts_;
  Results results_;
  Cancellation cancellation_;
  WaitingReport waiting_;
  TaskPool tasks_ GUARDED_BY(worker_mutex);
  uint64_t last_number_ GUARDED_BY(worker_mutex) = 0;
  // Each template is at the index that is its number; null stands for one that others own.
  std::vector<std::unique_ptr<Template>> templates_ GUARDED_BY(worker_mutex);
  std::unordered_map<std::string, Template*> template_by_bytes_ GUARDED_BY(worker_mutex);
};

}  // namespace rt::worker
