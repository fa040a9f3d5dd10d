// The fixture of the node-manager's core tests: a NodeCore with a recording sink and virtual time,
// whose worker processes start and end when the test says so.
#pragma once

#include <gtest/gtest.h>

#include "recording_sink.h"

namespace rt::node {

inline ResourceSet resources_of(std::map<std::string, double> amounts) {
  return ResourceSet::from_map(amounts).value();
}

class NodeCoreTest : public testing::Test {
 protected:
  static constexpr int64_t kMs = 1000;

  void make(double cpus, int prestart = 0) { make_with({{"CPU", cpus}}, prestart); }
  void make_with(std::map<std::string, double> total, int prestart = 0) {
    settings.prestart_workers = prestart;
    NodeIdentity me;
    Rng rng(7);
    me.id = NodeId::random(rng);
    me.ip = "10.0.0.1";
    me.total = resources_of(std::move(total));
    core = std::make_unique<NodeCore>(sink, settings, me);
    core->start(now());
  }
  void TearDown() override {
    if (!core) return;
    core->check_invariants();
    EXPECT_EQ(sink.rest(), "");
  }

  Now now() const { return {time_us, time_us}; }
  void pass(int64_t us) {
    time_us += us;
    core->tick(now());
    core->check_invariants();
  }
  JobId job(uint32_t n = 1) const { return job_id_from_int(n); }

  proto::LeaseDemand demand(int want, std::map<std::string, double> amounts = {{"CPU", 1}},
                            uint64_t class_id = 1, uint32_t of_job = 1) {
    proto::LeaseDemand d;
    d.set_class_id(class_id);
    resources_of(amounts).to_proto(d.mutable_resources());
    d.set_want(want);
    d.mutable_job()->set_job_id(job(of_job).binary());
    d.set_what("f");
    return d;
  }
  // Sets a demand of an owner that has seen all earlier answers.
  // `process` is the owner if it is a worker of this node.
  void want(OwnerId owner, proto::LeaseDemand d, const WorkerId& process = {}) {
    d.set_last_answer(sink.last_answer);
    core->set_demand(owner, process, d, now());
    core->check_invariants();
  }
  // Starts and registers the worker process that the core requested first.
  WorkerId start_worker() {
    WorkerId id = RecordingSink::take(sink.spawns).id;
    core->worker_spawned(id, ++pids, now());
    EXPECT_TRUE(core->worker_registered(id, pids, "/s/" + id.hex(), now()));
    core->check_invariants();
    return id;
  }
  void start_workers(int n) {
    for (int i = 0; i < n; ++i) start_worker();
  }
  RecordingSink::Grant take_grant() { return RecordingSink::take(sink.grants); }
  WorkerId worker_of(const RecordingSink::Grant& grant) const {
    return WorkerId::from_binary(grant.message.worker().worker_id());
  }
  void give_back(const RecordingSink::Grant& grant, bool failed = false) {
    proto::LeaseReturn request;
    request.set_lease_id(grant.message.lease_id());
    request.set_worker_failed(failed);
    core->return_lease(grant.owner, request, now());
    core->check_invariants();
  }
  // Reports the end of a worker's process.
  void reap(const WorkerId& id, int signal, int code = 0, const std::string& tail = "") {
    core->worker_exited(id, ProcessEnd{true, code, signal, tail}, now());
    core->check_invariants();
  }
  proto::Node peer(uint64_t seed, std::map<std::string, double> total,
                   std::map<std::string, double> available, int64_t incarnation = 1) {
    Rng rng(seed);
    proto::Node node;
    node.set_node_id(NodeId::random(rng).binary());
    node.set_ip("10.0.0.9");
    node.set_alive(true);
    node.set_incarnation(incarnation);
    resources_of(total).to_proto(node.mutable_total());
    resources_of(available).to_proto(node.mutable_available());
    return node;
  }
  proto::CreateActorRequest actor(uint32_t n, std::map<std::string, double> placement,
                                  std::map<std::string, double> lifetime) {
    proto::CreateActorRequest request;
    request.mutable_spec()->set_actor_id(make_actor_id(job(), n, n).binary());
    request.mutable_spec()->set_job_id(job().binary());
    resources_of(placement).to_proto(request.mutable_spec()->mutable_placement());
    resources_of(lifetime).to_proto(
        request.mutable_spec()->mutable_creation()->mutable_resources());
    request.set_epoch(1);
    return request;
  }
  void create(const proto::CreateActorRequest& request) {
    core->create_actor(request, now());
    core->check_invariants();
  }
  void constructed(const proto::CreateActorRequest& request) {
    proto::CreateActorReply ok;
    ok.set_ok(true);
    core->actor_start_done(ActorId::from_binary(request.spec().actor_id()), request.epoch(), ok,
                           now());
    core->check_invariants();
  }
  double free_cpus() const { return core->view().resources().available().get("CPU"); }

  Settings settings;
  RecordingSink sink;
  std::unique_ptr<NodeCore> core;
  int64_t time_us = 1'000'000;
  int pids = 100;
};

}  // namespace rt::node
