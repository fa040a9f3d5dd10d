// Placement groups of this process: asking the head for them, hearing of them, and the tasks and
// actors that run in the group of their submitter.
//
// A group that this process creates is registered at once. Unless it has a name, the head may lose
// it until it is CREATED, so it is registered again on each new connection until then.
//
// A task that captures its children has them run in its own group, unless they say where they run.
// The template of such a child is a copy per group, made at its first call. It is freed once the
// group is removed and its last task has ended.
//
// Functions that take the lock as an argument release it while they wait.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "worker/core/group_view.h"
#include "worker/core/task.h"
#include "worker/placement_groups.h"
#include "worker/service/lock.h"
#include "worker/service/shared.h"

namespace rt::worker {

class Execution;
class HeadConnection;
class LeaseClient;
class Notices;
class Pump;
class Submission;

class Groups {
 public:
  // All of them outlive this object.
  struct Parts {
    Shared& shared;
    Pump& pump;
    HeadConnection& head;
    Submission& submission;
    LeaseClient& leases;
    Execution& execution;
    Notices& notices;
  };
  explicit Groups(const Parts& parts);
  ~Groups();

  const GroupView& view() const REQUIRES(worker_mutex) { return view_; }
  void set_here(const NodeId& node) REQUIRES(worker_mutex) { view_.set_here(node); }

  Result<GroupId> create(WorkerLock& lock, proto::GroupSpec spec) REQUIRES(worker_mutex);
  Status remove(WorkerLock& lock, const GroupId& id) REQUIRES(worker_mutex);
  Waited wait(WorkerLock& lock, const GroupId& id, int64_t deadline_us) REQUIRES(worker_mutex);

  // Something in this process names the group from here on: its news are wanted.
  void use(const GroupId& id) REQUIRES(worker_mutex);
  // News of the head.
  void update(const proto::GroupInfo& info) REQUIRES(worker_mutex);
  // There is a new connection to the head: repeats what only the old one knew.
  void head_is_back() REQUIRES(worker_mutex);
  // Whether a lost connection to the head must be made again, although nobody asks anything.
  bool need_head() const REQUIRES(worker_mutex) { return !view_.empty(); }

  // This process executes tasks or methods with this template.
  void executes(const proto::TaskTemplate& spec) REQUIRES(worker_mutex) {
    capturing_ |= spec.captures_children();
  }
  // Whether this process has executed anything that captures its children. False in drivers.
  bool capturing() const REQUIRES(worker_mutex) { return capturing_; }
  // The template with which a task that the calling thread submits runs: `function` itself, or its
  // copy in the group of the running task, whose tasks are counted from here on.
  const Template* for_submitter(const Template* function) REQUIRES(worker_mutex);
  // The same for an actor's creation.
  void capture(proto::TaskTemplate* creation) REQUIRES(worker_mutex);
  // A task with a copy has ended.
  void task_ended(const Template& copy) REQUIRES(worker_mutex);
  CurrentGroup current() const REQUIRES(worker_mutex);

 private:
  // A group of this process that it registers again when the head may have lost it.
  struct Own {
    std::shared_ptr<const proto::RegisterGroupRequest> request;
    bool answered = false;
  };
  using Registered = std::function<void(const Status&)>;
  // Adds to what the binding has filled in what only this process knows.
  void complete_spec(const GroupId& id, proto::GroupSpec* spec) const REQUIRES(worker_mutex);
  void send_registration(const GroupId& id, Registered done) REQUIRES(worker_mutex);
  void refused(const GroupId& id, const Error& why) REQUIRES(worker_mutex);
  // Whether this process is a driver that has created the group, which cannot outlive it.
  bool ends_with_this_process(const GroupId& id) const REQUIRES(worker_mutex);
  // Sends the removal until the head has answered; calls `done` once, when it has (`confirm`) or
  // when the removal has been sent. `held`: the view keeps the group until the answer.
  void send_removal(const GroupId& id, bool held, bool confirm, Registered done)
      REQUIRES(worker_mutex);

  void subscribe(const std::vector<GroupId>& ids) REQUIRES(worker_mutex);
  // Asks for groups of which the head said nothing, after a moment in which their creators can
  // register them.
  void ask_later(std::vector<GroupId> ids) REQUIRES(worker_mutex);
  void ask(const GroupId& id) REQUIRES(worker_mutex);
  void changed(const GroupId& id) REQUIRES(worker_mutex);

  // The template of the task that the calling thread executes, or which it acts for; null if none.
  const proto::TaskTemplate* caller() const REQUIRES(worker_mutex);
  // The group of `caller`, if it captures a child with the template `child`; else nil.
  static GroupId capturer(const proto::TaskTemplate* caller, const proto::TaskTemplate& child);
  void sweep_later() REQUIRES(worker_mutex);
  void sweep() REQUIRES(worker_mutex);

  const Parts parts_;
  GroupView view_ GUARDED_BY(worker_mutex);
  std::unordered_map<GroupId, Own> own_ GUARDED_BY(worker_mutex);
  // Kept in the view, for whoever asks why they are not created.
  std::deque<GroupId> refused_ GUARDED_BY(worker_mutex);
  bool capturing_ GUARDED_BY(worker_mutex) = false;
  // Since when the connection to the head is open.
  int64_t head_since_us_ GUARDED_BY(worker_mutex) = 0;
  using Copies = std::map<const Template*, std::unique_ptr<Template>>;
  std::unordered_map<GroupId, Copies> copies_ GUARDED_BY(worker_mutex);
  bool sweep_timer_set_ GUARDED_BY(worker_mutex) = false;
};

}  // namespace rt::worker
