// The head: a HeadCore with model connections and a model disk. The disk survives a crash, with
// all that was committed, whether or not the core had heard of the commit.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>

#include "daemons/head/core/head_core.h"
#include "tests/sim/disk.h"
#include "tests/sim/head_groups.h"
#include "tests/sim/head_records.h"
#include "tests/sim/world.h"

namespace rt::sim {

class SimHead final : public Process, private head::HeadSink {
 public:
  // `cannot_start` is called, after the process has ended, if the disk does not take its first
  // records.
  SimHead(World& world, Disk& disk, std::function<void()> cannot_start);

  void accepted(const ChannelPtr& channel) override;
  // Ends the process like SIGKILL: a random number of the writes in flight has reached the disk.
  void crash();
  const head::HeadCore& core() const { return core_; }
  HeadRecords& records() { return records_; }
  // No peer hears of this incarnation before it is on disk.
  bool listens() const { return listens_; }

  // ---- requests that arrive over connections
  template <class T>
  using Answer = Channel::Answer<T>;
  void register_node(Channel& from, const proto::RegisterNodeRequest& request,
                     Answer<proto::RegisterNodeReply> answer);
  void report_resources(Channel& from, const proto::ResourceReport& report);
  void unregister_node(Channel& from, const proto::UnregisterNodeRequest& request);
  void actor_started(Channel& from, const proto::ActorStarted& report, Answer<proto::Empty> answer);
  void actor_died(Channel& from, const proto::ActorDied& report, Answer<proto::Empty> answer);
  void dead_workers(Channel& from, const proto::DeadWorkers& report, Answer<proto::Empty> answer);
  void add_job(const proto::AddJobRequest& request, Answer<proto::AddJobReply> answer);
  void finish_job(const proto::FinishJobRequest& request, Answer<proto::Empty> answer);
  void register_actor(const proto::RegisterActorRequest& request,
                      Answer<proto::RegisterActorReply> answer);
  void get_actor(const proto::GetActorRequest& request, Answer<proto::GetActorReply> answer);
  void kill_actor(const proto::KillActorRequest& request, Answer<proto::Empty> answer);
  void subscribe(Channel& from, const proto::SubscribeRequest& request,
                 Answer<proto::Empty> answer);
  void register_group(Channel& from, const proto::RegisterGroupRequest& request,
                      Answer<proto::Empty> answer);
  void remove_group(Channel& from, const proto::GroupRequest& request, Answer<proto::Empty> answer);
  void get_group(const proto::GetGroupRequest& request, Answer<proto::GetGroupReply> answer);

 private:
  void persist(uint64_t id, head::Batch batch) override;
  void create_actor(const head::NodeLink& node, const proto::CreateActorRequest& request) override;
  void kill_worker(const head::NodeLink& node, const proto::KillWorkerRequest& request) override;
  void prepare_bundles(const head::NodeLink& node,
                       const proto::PrepareBundlesRequest& request) override;
  void return_bundles(const head::NodeLink& node,
                      const proto::ReturnBundlesRequest& request) override;
  void start_job(const head::NodeLink& node, const proto::StartJobProcessRequest& request) override;
  void stop_job(const head::NodeLink& node, const std::string& submission_id) override;
  void remove_job_log(const head::NodeLink& node, const std::string& submission_id) override;
  void probe(const NodeId& node, const std::string& ip, int port) override;
  void push(head::ConnId conn, const proto::HeadEvent& event) override;
  void close(head::ConnId conn, const Error& why) override;

  // Passes an event to the core and checks the core's invariants afterwards.
  template <class F>
  auto drive(F event) {
    Now now = clock_.now();
    if constexpr (std::is_void_v<decltype(event(core_, now))>) {
      event(core_, now);
      check(now);
    } else {
      auto result = event(core_, now);
      check(now);
      return result;
    }
  }
  // Checks the core after an event, and arms its alarm.
  void check(Now now);
  void arm_tick();
  Channel* channel(head::ConnId conn);
  // Records that the head waits for the answer of a node.
  template <class T>
  Answer<T> awaited(const NodeId& node, const char* what, Answer<T> answered);
  HeadRecords::Environment records_environment();
  head::Records shown(const char* table) const;
  void write_next();
  void commit(const head::Batch& batch);
  void written(uint64_t batch, const Status& status);

  struct Writing {
    uint64_t id;
    head::Batch batch;
  };
  World& world_;
  Disk& disk_;
  head::HeadCore core_;
  std::map<head::ConnId, ChannelPtr> channels_;
  std::deque<Writing> writing_;     // batches on their way to the disk, in order
  std::optional<Writing> refused_;  // by the disk, while the core has not heard of it
  HeadRecords records_;
  RemovedGroups removed_groups_;
  bool busy_ = false;                 // a write is scheduled
  std::set<std::string> dead_nodes_;  // the ids of those that it has told to be dead
  const std::function<void()> cannot_start_;
  bool listens_ = false;
  VirtualClock::Id tick_ = 0;
  int64_t tick_at_us_ = 0;
};

// The process that listens at the address of the head, or null.
inline Process* listening_head(const World& world) {
  return world.head && world.head->listens() ? world.head : nullptr;
}

inline SimHead& head_at(Channel& arrived) { return static_cast<SimHead&>(*arrived.process()); }

}  // namespace rt::sim
