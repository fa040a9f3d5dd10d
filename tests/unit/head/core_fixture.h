// The fixture of the head's core tests: a HeadCore with a recording sink, virtual time and an
// in-memory disk that survives restarts of the core. Every test ends by checking that it took
// everything the sink recorded.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

#include "daemons/head/core/head_core.h"
#include "daemons/head/storage/memory_storage.h"

namespace rt::head {

// Records the decisions of the core, for tests to take.
struct RecordingSink final : HeadSink {
  struct Create {
    NodeLink node;
    proto::CreateActorRequest request;
  };
  struct Kill {
    NodeLink node;
    proto::KillWorkerRequest request;
  };
  struct Prepare {
    NodeLink node;
    proto::PrepareBundlesRequest request;
  };
  struct Return {
    NodeLink node;
    proto::ReturnBundlesRequest request;
  };
  struct Start {
    NodeLink node;
    proto::StartJobProcessRequest request;
  };
  struct Stop {
    NodeLink node;
    std::string submission_id;
  };
  struct Probe {
    NodeId node;
    std::string ip;
    int port;
  };
  struct Push {
    ConnId conn;
    proto::HeadEvent event;
  };
  struct Close {
    ConnId conn;
    Error why;
  };

  std::deque<std::pair<uint64_t, Batch>> persists;
  std::deque<Create> creates;
  std::deque<Kill> kills;
  std::deque<Prepare> prepares;
  std::deque<Return> returns;
  std::deque<Start> starts;
  std::deque<Stop> stops;
  std::deque<Stop> removed_logs;
  // Probes are repeated until they are answered, so a test need not take them.
  std::deque<Probe> probes;
  std::deque<Push> pushes;
  std::deque<Close> closes;

  void persist(uint64_t id, Batch batch) override { persists.emplace_back(id, std::move(batch)); }
  void create_actor(const NodeLink& node, const proto::CreateActorRequest& request) override {
    creates.push_back({node, request});
  }
  void kill_worker(const NodeLink& node, const proto::KillWorkerRequest& request) override {
    kills.push_back({node, request});
  }
  void prepare_bundles(const NodeLink& node, const proto::PrepareBundlesRequest& request) override {
    prepares.push_back({node, request});
  }
  void return_bundles(const NodeLink& node, const proto::ReturnBundlesRequest& request) override {
    returns.push_back({node, request});
  }
  void start_job(const NodeLink& node, const proto::StartJobProcessRequest& request) override {
    starts.push_back({node, request});
  }
  void stop_job(const NodeLink& node, const std::string& submission_id) override {
    stops.push_back({node, submission_id});
  }
  void remove_job_log(const NodeLink& node, const std::string& submission_id) override {
    removed_logs.push_back({node, submission_id});
  }
  void probe(const NodeId& node, const std::string& ip, int port) override {
    probes.push_back({node, ip, port});
  }
  void push(ConnId conn, const proto::HeadEvent& event) override {
    pushes.push_back({conn, event});
  }
  void close(ConnId conn, const Error& why) override { closes.push_back({conn, why}); }

  void expect_empty() const {
    EXPECT_TRUE(persists.empty()) << "not answered: " << persists.front().second.front().table;
    EXPECT_TRUE(creates.empty()) << creates.front().request.ShortDebugString();
    EXPECT_TRUE(kills.empty()) << kills.front().request.ShortDebugString();
    EXPECT_TRUE(prepares.empty()) << prepares.front().request.ShortDebugString();
    EXPECT_TRUE(returns.empty()) << returns.front().request.ShortDebugString();
    EXPECT_TRUE(starts.empty()) << starts.front().request.ShortDebugString();
    EXPECT_TRUE(stops.empty()) << stops.front().submission_id;
    EXPECT_TRUE(removed_logs.empty()) << removed_logs.front().submission_id;
    EXPECT_TRUE(pushes.empty()) << pushes.size() << ", first to " << pushes.front().conn << ": "
                                << pushes.front().event.ShortDebugString();
    EXPECT_TRUE(closes.empty()) << closes.front().why.message;
  }
};

// Collects the answer of a request that is answered when a commit is durable.
template <class T>
struct Answer {
  std::shared_ptr<std::optional<Result<T>>> got = std::make_shared<std::optional<Result<T>>>();
  Reply<T> reply() {
    return [got = got](Result<T> result) {
      EXPECT_FALSE(got->has_value()) << "answered twice";
      *got = std::move(result);
    };
  }
  bool answered() const { return got->has_value(); }
  bool ok() const { return answered() && got->value().has_value(); }
  const T& operator*() const { return *got->value(); }
  const T* operator->() const { return &*got->value(); }
  Error error() const { return answered() && !ok() ? got->value().error() : Error{}; }
};

template <class T>
T take(std::deque<T>& queue) {
  if (queue.empty()) {
    ADD_FAILURE() << "nothing was sent";
    return T{};
  }
  T first = std::move(queue.front());
  queue.pop_front();
  return first;
}

inline NodeId node_id(int n) {
  NodeId id;
  for (size_t i = 0; i < NodeId::kSize; ++i) id.data()[i] = static_cast<uint8_t>(i == 0 ? n : 7);
  return id;
}

inline WorkerId worker_id(int n) {
  WorkerId id;
  for (size_t i = 0; i < WorkerId::kSize; ++i) id.data()[i] = static_cast<uint8_t>(i == 0 ? n : 9);
  return id;
}

inline void set_resources(proto::Resources* out, const std::map<std::string, double>& amounts) {
  ResourceSet::from_map(amounts)->to_proto(out);
}

class HeadTest : public ::testing::Test {
 protected:
  HeadTest() {
    options.session_name = "session_test";
    options.head_address = "10.0.0.1:6379";
    restart();
  }
  void TearDown() override {
    sink.expect_empty();
    core->check_invariants(now);
  }

  // Replaces the core by a new one on the same disk. Everything that was not committed is lost,
  // and so are all connections.
  void restart() {
    core.reset();
    sink = RecordingSink();
    core = std::make_unique<HeadCore>(options, sink);
    Status loaded = core->load(disk.tables, now);
    ASSERT_TRUE(loaded) << loaded.error().message;
    commit();
  }

  // Answers every outstanding write, including the writes that follow from the answers.
  void commit() {
    while (!sink.persists.empty()) {
      auto [id, batch] = take(sink.persists);
      Status status;
      if (disk.failure) {
        status = *disk.failure;
      } else {
        MemoryStorage::write(disk, batch);
      }
      core->persisted(id, status, now);
      core->check_invariants(now);
    }
  }
  void set_time(int64_t steady_us) {
    now.wall_us += steady_us - now.steady_us;
    now.steady_us = steady_us;
  }
  // Lets `ms` milliseconds pass. Timers fire when they are due, and the disk answers at once.
  void advance(int64_t ms) {
    int64_t end = now.steady_us + ms * 1000;
    auto due = [&] { return core->next_tick_us() >= 0 && core->next_tick_us() <= end; };
    for (int i = 0; i < 100000 && due(); ++i) {
      set_time(std::max(now.steady_us, core->next_tick_us()));
      core->tick(now);
      commit();
    }
    set_time(end);
  }
  // Like advance(), while the given nodes send heartbeats.
  void advance_alive(int64_t ms, std::initializer_list<int> nodes) {
    for (int64_t left = ms; left > 0; left -= 500) {
      advance(std::min<int64_t>(left, 500));
      for (int n : nodes) report(n, reported[n]);
    }
  }

  static ConnId conn_of(int node) { return 100 + node; }

  proto::RegisterNodeRequest registration(int n, const std::map<std::string, double>& resources) {
    proto::RegisterNodeRequest request;
    proto::Node& node = *request.mutable_node();
    node.set_node_id(node_id(n).binary());
    node.set_ip("10.0.0." + std::to_string(n));
    node.set_port(7000);
    set_resources(node.mutable_total(), resources);
    node.set_is_head(n == 1);
    return request;
  }
  Answer<proto::RegisterNodeReply> register_node(ConnId conn,
                                                 const proto::RegisterNodeRequest& request) {
    Answer<proto::RegisterNodeReply> answer;
    core->register_node(conn, request, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  }
  void add_node(int n, const std::map<std::string, double>& resources) {
    reported[n] = resources;
    auto answer = register_node(conn_of(n), registration(n, resources));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    drop_node_pushes();
  }
  Status report(int n, const std::map<std::string, double>& available) {
    reported[n] = available;
    proto::ResourceReport report;
    report.set_node_id(node_id(n).binary());
    set_resources(report.mutable_available(), available);
    report.set_incarnation(++incarnation);
    Status status = core->report_resources(conn_of(n), report, now);
    commit();
    core->check_invariants(now);
    drop_node_pushes();
    return status;
  }
  // Drops the pushes that contain nothing but changes of nodes, which most tests are not about.
  void drop_node_pushes() {
    std::erase_if(sink.pushes, [](const RecordingSink::Push& push) {
      return push.event.nodes_size() > 0 && push.event.actors_size() + push.event.groups_size() +
                                                    push.event.finished_jobs_size() +
                                                    push.event.dead_workers_size() ==
                                                0;
    });
  }
  // Gives `answer` to every outstanding probe of a node's port.
  void answer_probes(const Status& answer) {
    for (auto asked = std::exchange(sink.probes, {}); const auto& probe : asked)
      core->probe_answered(probe.node, answer, now);
    commit();
    core->check_invariants(now);
  }
  static Status refused() { return make_error(Code::kUnavailable, "connection refused"); }
  void lose_node_keeping_news(int n) {
    core->connection_closed(conn_of(n), now);
    commit();
    answer_probes(refused());
    advance(options.settings.node_reconnect_grace_ms);
  }
  void lose_node(int n) {
    lose_node_keeping_news(n);
    drop_node_pushes();
  }

  proto::AddJobRequest job_request(int node) {
    proto::AddJobRequest request;
    request.set_node_id(node_id(node).binary());
    request.set_worker_id(WorkerId::nil().binary());
    request.set_ip("10.0.0." + std::to_string(node));
    request.set_pid(4242);
    return request;
  }
  JobId add_job(int node = 1) {
    Answer<proto::AddJobReply> answer;
    core->add_job(job_request(node), now, answer.reply());
    commit();
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? JobId::from_binary(answer->job_id()) : JobId::nil();
  }
  void finish_job(JobId job) {
    proto::FinishJobRequest request;
    request.set_job_id(job.binary());
    ASSERT_TRUE(core->finish_job(request, now));
    commit();
    core->check_invariants(now);
  }

  // `placement` has to be free on a node that starts the actor; `held` is what the actor keeps
  // while it lives.
  proto::RegisterActorRequest actor_request(JobId job,
                                            const std::map<std::string, double>& placement,
                                            const std::map<std::string, double>& held) {
    proto::RegisterActorRequest request;
    proto::ActorSpec& spec = *request.mutable_spec();
    spec.set_actor_id(make_actor_id(job, ++last_actor, 1).binary());
    spec.set_job_id(job.binary());
    spec.set_class_name("Counter");
    spec.set_ray_namespace("ns");
    spec.mutable_owner()->set_worker_id(driver_worker_id(job).binary());
    spec.mutable_owner()->set_node_id(node_id(1).binary());
    set_resources(spec.mutable_placement(), placement);
    set_resources(spec.mutable_creation()->mutable_resources(), held);
    return request;
  }
  Answer<proto::RegisterActorReply> register_actor(const proto::RegisterActorRequest& request) {
    Answer<proto::RegisterActorReply> answer;
    core->register_actor(request, now, answer.reply());
    commit();
    core->check_invariants(now);
    return answer;
  }
  // The request that brings the arguments of an actor that was registered without them.
  static proto::RegisterActorRequest arguments_of(const proto::RegisterActorRequest& registered) {
    proto::RegisterActorRequest request;
    request.set_arguments(proto::RegisterActorRequest::OF_REGISTERED);
    request.mutable_spec()->set_actor_id(registered.spec().actor_id());
    request.mutable_spec()->add_args()->set_inlined("argument");
    return request;
  }
  ActorId create(const proto::RegisterActorRequest& request) {
    auto answer = register_actor(request);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return ActorId::from_binary(request.spec().actor_id());
  }
  void answer_create(const RecordingSink::Create& create,
                     const Result<proto::CreateActorReply>& reply) {
    core->create_actor_answered(create.node.node,
                                ActorId::from_binary(create.request.spec().actor_id()),
                                create.request.epoch(), reply, now);
    commit();
    core->check_invariants(now);
  }
  proto::CreateActorReply created(int worker) {
    proto::CreateActorReply reply;
    reply.set_ok(true);
    reply.mutable_address()->set_worker_id(worker_id(worker).binary());
    reply.set_pid(1000 + worker);
    return reply;
  }
  // Creates an actor that runs in `worker`.
  ActorId alive_actor(const proto::RegisterActorRequest& request, int worker) {
    ActorId id = create(request);
    answer_create(take(sink.creates), created(worker));
    EXPECT_EQ(state(id), proto::ACTOR_ALIVE);
    return id;
  }
  Status died(int node, const ActorId& id, int64_t epoch, proto::ExitInfo::Kind kind) {
    proto::ActorDied report;
    report.set_actor_id(id.binary());
    report.set_epoch(epoch);
    report.mutable_death()->set_kind(kind);
    Status status = core->actor_died(conn_of(node), report, now);
    commit();
    core->check_invariants(now);
    return status;
  }
  Status kill(const ActorId& id, bool no_restart,
              proto::ExitInfo::Kind why = proto::ExitInfo::KILLED_BY_USER, bool graceful = false) {
    proto::KillActorRequest request;
    request.set_actor_id(id.binary());
    request.set_no_restart(no_restart);
    request.set_why(why);
    request.set_graceful(graceful);
    std::optional<Status> status;
    core->kill_actor(request, now, [&](Result<proto::Empty> reply) {
      status = reply ? Status() : Status(reply.error());
    });
    commit();
    core->check_invariants(now);
    EXPECT_TRUE(status) << "no answer";
    return status.value_or(Status());
  }
  const proto::ActorInfo& info(const ActorId& id) { return core->view().actors().find(id)->info; }
  proto::ActorState state(const ActorId& id) { return info(id).state(); }
  proto::GetActorReply find_named(const std::string& name, const std::string& ns = "ns") {
    proto::GetActorRequest request;
    request.set_name(name);
    request.set_ray_namespace(ns);
    return *core->view().get_actor(request);
  }

  HeadOptions options;
  Now now{1'000'000'000, 1'700'000'000'000'000};
  MemoryStorage::Disk disk;
  RecordingSink sink;
  std::unique_ptr<HeadCore> core;
  std::map<int, std::map<std::string, double>> reported;
  int64_t incarnation = 0;
  uint64_t last_actor = 0;
};

}  // namespace rt::head
