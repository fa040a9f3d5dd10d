// A worker process: connects to its node-manager, runs what owners push, one task at a time, in
// order.
//
// It ends when it is killed, when a task crashes it, when it is asked to and idle, or when its
// node-manager is gone.
#pragma once

#include <deque>
#include <optional>

#include "common/proto/node_manager.pb.h"
#include "daemons/node_manager/core/types.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimNode;
enum class TaskStatus { kOk, kNotStarted };

struct TaskMessage {
  uint32_t seq = 0;
  TaskId id;
};

class SimWorker final : public Process {
 public:
  // The node outlives its workers.
  SimWorker(World& world, SimNode& node, const WorkerId& id, int pid);

  void accepted(const ChannelPtr& channel) override;
  // The process ends now; its node-manager reaps it a moment later.
  void die(const node::ProcessEnd& end);

  // ---- from owners
  void run(Channel& from, const TaskMessage& task);
  void take_back(Channel& from, int count);
  // ---- from the node-manager
  // Graceful: after all that has arrived; else after what runs now.
  void ask_exit(bool graceful);
  void start_actor(const proto::CreateActorRequest& request,
                   Channel::Answer<proto::CreateActorReply> answer);

  const WorkerId& id() const { return id_; }
  int pid() const { return pid_; }
  // What it computes with at this moment; null: idle, waiting in get(), or back from there, when
  // its node may be over-committed.
  const TaskPlan* computing() const;
  // What has arrived and not ended.
  size_t load() const { return incoming_.size() + running_.has_value(); }
  bool is_actor() const { return !actor_.is_nil(); }

 private:
  struct Incoming {
    ChannelPtr from;
    TaskMessage task;
  };
  struct Running {
    Incoming incoming;
    const TaskRecord* record;
    int64_t since_us;
  };
  void connect();
  void next();
  void give_back(Channel* only, size_t limit);
  void blocked(bool on);
  void finished();
  void check_one_owner(const Channel& from) const;

  World& world_;
  SimNode& node_;
  const WorkerId id_;
  const int pid_;
  ChannelPtr node_channel_;
  std::map<uint64_t, ChannelPtr> links_;  // owners, by connection
  std::deque<Incoming> incoming_;
  std::optional<Running> running_;
  ActorId actor_;
  int64_t epoch_ = 0;
  std::map<uint64_t, uint64_t> last_order_;  // of calls, by connection
  bool constructed_ = false, exit_when_idle_ = false, leaving_ = false, ever_blocked_ = false;
};

inline SimWorker& worker_at(Channel& arrived) {
  return static_cast<SimWorker&>(*arrived.process());
}

}  // namespace rt::sim
