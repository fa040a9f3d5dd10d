// A worker process: a TaskLine, a Leaving and the FrameLines of its replies, with models of the
// code of users and of what worker/service provides. It registers at its node-manager and runs the
// tasks that owners push, one at a time.
//
// It ends when it is killed, when a task crashes it, when Leaving says so, or when its node-manager
// is gone.
#pragma once

#include <optional>

#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/types.h"
#include "tests/sim/store_user.h"
#include "tests/sim/worker_replies.h"
#include "tests/sim/world.h"
#include "worker/core/leaving.h"
#include "worker/core/task_line.h"

namespace rt::sim {

class SimNode;
// kRefused: the actor has left. kErrorRetry: the code of the user has failed with an error that is
// to be retried. kInterrupted: it has ended because the task was cancelled. kNoRoom: the store has
// no room for its arguments.
enum class TaskStatus { kOk, kNotStarted, kRefused, kError, kErrorRetry, kInterrupted, kNoRoom };

struct TaskMessage {
  uint32_t seq = 0;
  TaskId id;
};
struct TaskReply {
  uint32_t seq = 0;
  TaskStatus status;
  uint32_t duration_us = 0;
  bool leaves = false;  // the worker takes no more tasks, as max_calls asks
};

class SimWorker final : public StoreUser, private worker::LineSink, private worker::LeaveSink {
 public:
  // `node` must outlive the worker.
  SimWorker(World& world, SimNode& node, const WorkerId& id, int pid);

  void accepted(const ChannelPtr& channel) override;
  // Ends the process now; its node-manager reaps it a moment later. Whether its last replies still
  // reach their owners is left to chance.
  void die(const node::ProcessEnd& end);

  // ---- from owners
  void run(Channel& from, const TaskMessage& task);
  void take_back(Channel& from, int count);
  void cancel(Channel& from, uint32_t seq, bool force, bool recursive);
  // ---- from the node-manager
  void ask_exit(bool graceful);
  // The node is about to call start_actor().
  void choose_for(const ActorId& actor) { chosen_for_ = actor; }
  void start_actor(const proto::CreateActorRequest& request,
                   Channel::Answer<proto::CreateActorReply> answer);
  // ---- from the object store
  void on_arguments(uint64_t ticket, bool whole) override;
  void on_room() override;

  const WorkerId& id() const { return id_; }
  int pid() const { return pid_; }
  // Returns the running task, or null if the worker is idle, is an actor, or has ever waited in
  // get(): after that its node may legally be over-committed.
  const TaskPlan* computing() const;
  // The number of tasks that have arrived and not ended.
  size_t load() const { return line_.tasks().size() + running_.has_value(); }
  // Says what runs and what waits in it; empty if nothing does.
  std::string describe() const;
  bool is_actor() const { return !actor_.is_nil(); }
  // The placement group of the task that runs in it or ran when it died, or of its actor; nil:
  // none. `bundle` -1: any.
  struct InGroup {
    GroupId group;
    int bundle = -1;
  };
  const InGroup& in_group() const { return in_group_; }

 private:
  struct Incoming : worker::LineTask {
    ChannelPtr from;  // null for the creation of the actor
    TaskId id;
    uint64_t ticket = 0;  // names its arguments to the store; 0: it was not asked for them
    bool got = false;     // the store has answered
  };
  using IncomingPtr = std::shared_ptr<Incoming>;
  struct Running {
    IncomingPtr incoming;
    const TaskRecord* record;
    int64_t since_us;
  };

  // LineSink, LeaveSink
  void fetch_arguments(const std::shared_ptr<worker::LineTask>& task) override;
  void give_up_arguments(worker::LineTask& task) override;
  void return_task(worker::LineTask& task) override;
  void refuse_call(worker::LineTask& task) override;
  void tell_blocked(bool blocked) override;
  bool holds_replies() const override { return replies_.held() > 0; }
  bool is_needed() const override { return clock_.now_us() < needed_until_us_; }
  void leave() override;
  void leave_at_once() override;
  void ask_to_end() override;

  // Passes an event to the cores and checks them. The process may have ended afterwards.
  template <class F>
  void drive(F event) {
    event();
    line_.check_invariants();
  }
  void end_process(const node::ProcessEnd& end, Exit how);
  void connect();
  void connect_store();
  void register_at_node();
  void next();
  void start(IncomingPtr incoming);
  void construct();
  void check_turn(const Incoming& incoming);
  void check_calls(const TaskPlan& plan);
  void check_place(const TaskRecord& record) const;
  void check_variables(const TaskPlan& plan) const;
  // Calls `run` unless the task that runs now has ended by then.
  void later(int64_t delay_us, const char* what, std::function<void()> run);
  void done() { finished(TaskStatus::kOk); }
  // Answers a task that no code of the user runs for.
  void refuse(const Incoming& task, TaskStatus status);
  void answer(const Incoming& task, TaskStatus status, uint32_t duration_us, bool leaves);
  // The code of the user keeps a reference that it got from there.
  void keep(const ChannelPtr& from, int64_t keeps_us);
  // Gives the task's place in the store's line up, and its arguments.
  void end_arguments(Incoming& task);
  void half_way();
  void wait_for_something();
  void blocked(bool on);
  void wait_for_child();
  void finished(TaskStatus status);
  void check_one_owner(const Channel& from, uint64_t owner);

  World& world_;
  SimNode& node_;
  const WorkerId id_;
  const int pid_;
  ChannelPtr node_channel_, store_;
  uint64_t last_ticket_ = 0;
  std::map<uint64_t, std::vector<StoredValue>> given_up_;  // while their answer is on its way
  StoredValue made_;
  std::map<uint64_t, ChannelPtr> links_;  // owners, by connection
  worker::TaskLine line_{*this};
  worker::Leaving leaving_{line_, *this};
  WorkerReplies replies_{world_, id_, [this] { leaving_.look(); }};
  std::optional<Running> running_;
  uint64_t runs_ = 0;    // the tasks that have started
  bool blocks_ = false;  // the one that runs waits in get()
  // The tasks that have come and are not over, by connection and number.
  std::set<std::pair<uint64_t, uint32_t>> unanswered_;
  std::map<int, int64_t> calls_;    // the calls that have ended, by function
  std::map<int, int64_t> started_;  // the calls that have started, by function
  int64_t needed_until_us_ = 0;     // others need what it owns until then
  ActorId chosen_for_;              // its node has sent it this actor
  ActorId actor_;
  int64_t epoch_ = 0;
  Channel::Answer<proto::CreateActorReply> created_;
  InGroup in_group_;
  std::map<uint64_t, uint64_t> last_order_;  // order of the last call, by connection
  uint64_t served_ = 0;  // number of the owner whose tasks it runs; 0: it has run none
  bool ever_blocked_ = false;
};

inline SimWorker& worker_at(Channel& arrived) {
  return static_cast<SimWorker&>(*arrived.process());
}

}  // namespace rt::sim
