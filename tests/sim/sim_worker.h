// A worker process. It registers at its node-manager and runs the tasks that owners push, one at a
// time and in order.
//
// It ends when it is killed, when a task crashes it, when it has been asked to exit and is done
// with its work, or when its node-manager is gone.
#pragma once

#include <deque>
#include <optional>

#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/types.h"
#include "tests/sim/store_user.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimNode;
enum class TaskStatus { kOk, kNotStarted };

struct TaskMessage {
  uint32_t seq = 0;
  TaskId id;
};

class SimWorker final : public StoreUser {
 public:
  // `node` must outlive the worker.
  SimWorker(World& world, SimNode& node, const WorkerId& id, int pid);

  void accepted(const ChannelPtr& channel) override;
  // Ends the process now; its node-manager reaps it a moment later.
  void die(const node::ProcessEnd& end);

  // ---- from owners
  void run(Channel& from, const TaskMessage& task);
  void take_back(Channel& from, int count);
  // ---- from the node-manager
  // Exits after all tasks that have arrived (`graceful`), or after the task that is running.
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
  size_t load() const { return incoming_.size() + running_.has_value(); }
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
  struct Incoming {
    ChannelPtr from;
    TaskMessage task;
    uint64_t ticket = 0;  // names its arguments to the store; 0: it has none
    bool ready = true;    // its arguments are here
  };
  struct Running {
    Incoming incoming;
    const TaskRecord* record;
    int64_t since_us;
  };
  void connect();
  void connect_store();
  void register_at_node();
  void next();
  // The task that runs next, or the end. The calls of one owner to an actor do not overtake each
  // other.
  std::deque<Incoming>::iterator first_ready();
  void get_arguments(Incoming& task);
  // Gives the task's place in the store's line up, and its arguments.
  void end_arguments(const Incoming& task);
  void half_way();
  void wait_for_something();
  // Returns up to `limit` tasks that have not started, the last ones first; only those of `only`
  // unless it is null.
  void give_back(Channel* only, size_t limit);
  void blocked(bool on);
  void wait_for_child();
  void finished();
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
  std::deque<Incoming> incoming_;
  std::optional<Running> running_;
  ActorId chosen_for_;  // its node has sent it this actor
  ActorId actor_;
  int64_t epoch_ = 0;
  InGroup in_group_;
  std::map<uint64_t, uint64_t> last_order_;  // order of the last call, by connection
  uint64_t served_ = 0;  // number of the owner whose tasks it runs; 0: it has run none
  bool constructed_ = false, exit_when_idle_ = false, leaving_ = false, ever_blocked_ = false,
       is_blocked_ = false;
};

inline SimWorker& worker_at(Channel& arrived) {
  return static_cast<SimWorker&>(*arrived.process());
}

}  // namespace rt::sim
