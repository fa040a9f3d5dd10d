// The nodes of the cluster in the head's core: registration, liveness, resource reports and
// demands.
#include "tests/unit/head/core_fixture.h"

namespace rt::head {
namespace {

class ClusterTest : public HeadTest {
 protected:
  bool alive(int n) { return core->view().cluster().find(node_id(n))->alive(); }
};

TEST_F(ClusterTest, RegistrationIsAnsweredBeforeAnythingElseIsSent) {
  bool pushed_before = true;
  core->register_node(conn_of(1), registration(1, {{"CPU", 4}}), now,
                      [&](Result<proto::RegisterNodeReply> reply) {
                        ASSERT_TRUE(reply);
                        EXPECT_EQ(reply->cluster_id(), core->view().cluster_id());
                        EXPECT_EQ(reply->nodes_size(), 1);
                        EXPECT_EQ(reply->head_incarnation(), 1);
                        pushed_before = !sink.pushes.empty();
                      });
  EXPECT_FALSE(pushed_before);
  commit();
  auto push = take(sink.pushes);
  EXPECT_EQ(push.conn, conn_of(1));
  EXPECT_TRUE(push.event.nodes(0).alive());
}

TEST_F(ClusterTest, MalformedRegistrationsAreRefused) {
  auto bad_id = registration(1, {});
  bad_id.mutable_node()->set_node_id("short");
  EXPECT_EQ(register_node(5, bad_id).error().code, Code::kInvalid);
  auto no_ip = registration(1, {});
  no_ip.mutable_node()->clear_ip();
  EXPECT_EQ(register_node(5, no_ip).error().code, Code::kInvalid);
  auto negative = registration(1, {});
  (*negative.mutable_node()->mutable_total()->mutable_units())["CPU"] = -1;
  EXPECT_EQ(register_node(5, negative).error().code, Code::kInvalid);
  EXPECT_TRUE(core->view().cluster().nodes().empty());
}

TEST_F(ClusterTest, ALostConnectionIsForgivenWithinTheGrace) {
  add_node(1, {{"CPU", 4}});
  core->connection_closed(conn_of(1), now);
  advance(1400);
  EXPECT_TRUE(alive(1));
  EXPECT_TRUE(register_node(555, registration(1, {{"CPU", 4}})).ok());
  advance(5000);
  EXPECT_TRUE(alive(1));
  drop_node_pushes();
}

TEST_F(ClusterTest, AfterTheGraceTheNodeIsDeadForGood) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  core->connection_closed(conn_of(2), now);
  answer_probes(refused());
  advance(1499);
  EXPECT_TRUE(alive(2));
  advance(2);
  EXPECT_FALSE(alive(2));
  auto news = take(sink.pushes);
  EXPECT_EQ(news.conn, conn_of(1));
  ASSERT_EQ(news.event.nodes_size(), 1);
  EXPECT_FALSE(news.event.nodes(0).alive());
  EXPECT_EQ(news.event.nodes(0).death_reason(), proto::UNEXPECTED_TERMINATION);
  auto again = register_node(9, registration(2, {{"CPU", 4}}));
  EXPECT_EQ(again.error().code, Code::kNodeDied);
  EXPECT_EQ(core->view().cluster_status(now).recent_failures_size(), 1);
}

TEST_F(ClusterTest, ANodeThatCannotBeReachedHasUntilTheTimeout) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  core->connection_closed(conn_of(2), now);
  auto asked = take(sink.probes);
  EXPECT_EQ(asked.node, node_id(2));
  EXPECT_EQ(asked.ip, "10.0.0.2");
  EXPECT_EQ(asked.port, 7000);
  core->probe_answered(node_id(2), make_error(Code::kTimeout, "no route"), now);
  EXPECT_TRUE(sink.probes.empty());
  advance_alive(options.settings.heartbeat_interval_ms, {1});
  EXPECT_EQ(sink.probes.size(), 1u);  // An unanswered probe is repeated.
  answer_probes({});                  // A process listens at the node's port.
  advance_alive(5000, {1});
  EXPECT_TRUE(alive(2));
  EXPECT_TRUE(register_node(555, registration(2, {{"CPU", 4}})).ok());
  drop_node_pushes();
  // After a second break the probes begin anew: answers to the first ones do not count.
  core->connection_closed(555, now);
  answer_probes(make_error(Code::kTimeout, "no route"));
  advance_alive(9000, {1});
  EXPECT_TRUE(alive(2));
  advance_alive(1000, {1});
  EXPECT_FALSE(alive(2));
  drop_node_pushes();
}

// A head that was stopped has not read the messages that came meanwhile, such as the registration
// of a node that has come back.
TEST_F(ClusterTest, AHeadThatSleptGivesANodeWithoutConnectionTimeToComeBack) {
  add_node(1, {{"CPU", 4}});
  core->connection_closed(conn_of(1), now);
  answer_probes(make_error(Code::kTimeout, "no route"));
  advance(1000);
  set_time(now.steady_us + 60'000'000);
  advance(0);
  EXPECT_TRUE(alive(1));
  EXPECT_TRUE(register_node(555, registration(1, {{"CPU", 4}})).ok());
  drop_node_pushes();
  EXPECT_TRUE(alive(1));
  core->connection_closed(555, now);
  answer_probes(make_error(Code::kTimeout, "no route"));
  set_time(now.steady_us + 60'000'000);
  advance(options.settings.node_timeout_ms);
  EXPECT_FALSE(alive(1)) << "it has not come back although the head was awake";
}

TEST_F(ClusterTest, AHeadThatSleptGivesANodeThatHadBeenSilentTimeToReport) {
  add_node(1, {{"CPU", 4}});
  const int64_t limit_ms = options.settings.node_timeout_ms;
  advance(limit_ms / 2);
  EXPECT_NE(core->view().get_nodes({}, now).nodes(0).problem(), "");
  // The head wakes at the moment when the node's time is over.
  set_time(now.steady_us + (limit_ms / 2 + 1) * 1000);
  advance(0);
  EXPECT_TRUE(alive(1));
  report(1, {{"CPU", 4}});
  advance_alive(limit_ms, {1});
  EXPECT_TRUE(alive(1));
  advance(2 * limit_ms);
  EXPECT_FALSE(alive(1));
  sink.closes.clear();
  commit();
  drop_node_pushes();
}

TEST_F(ClusterTest, AHostThatRefusesAfterAWhileHasLostItsNodeManager) {
  add_node(1, {{"CPU", 4}});
  core->connection_closed(conn_of(1), now);
  answer_probes(make_error(Code::kTimeout, "no route"));
  advance(3000);
  EXPECT_TRUE(alive(1));
  answer_probes(refused());
  advance(0);
  EXPECT_FALSE(alive(1));
  EXPECT_NE(core->view().cluster().find(node_id(1))->info.death_message().find("refused"),
            std::string::npos);
}

TEST_F(ClusterTest, ASilentNodeIsDeclaredDeadAndDisconnected) {
  add_node(1, {{"CPU", 4}});
  advance_alive(9000, {1});
  advance(9900);
  EXPECT_TRUE(alive(1));
  advance(200);
  EXPECT_FALSE(alive(1));
  EXPECT_EQ(take(sink.closes).conn, conn_of(1));
}

TEST_F(ClusterTest, ANodeThatLeavesIsNoFailure) {
  add_node(1, {{"CPU", 4}});
  proto::UnregisterNodeRequest request;
  request.set_node_id(node_id(1).binary());
  request.set_reason(proto::EXPECTED_TERMINATION);
  request.set_message("stopped by rayctl stop");
  EXPECT_TRUE(core->unregister_node(conn_of(1), request, now));
  commit();
  EXPECT_FALSE(alive(1));
  EXPECT_EQ(core->view().cluster().find(node_id(1))->info.death_message(),
            "stopped by rayctl stop");
  EXPECT_EQ(core->view().cluster_status(now).recent_failures_size(), 0);
  EXPECT_EQ(take(sink.closes).conn, conn_of(1));
  EXPECT_EQ(core->unregister_node(conn_of(1), request, now).error().code, Code::kNotFound);
}

TEST_F(ClusterTest, ANodeThatWasDrainedIsNoFailure) {
  for (auto reason : {proto::DRAINED_IDLE, proto::DRAINED_FOR_PREEMPTION}) {
    add_node(reason, {{"CPU", 4}});
    proto::UnregisterNodeRequest request;
    request.set_node_id(node_id(reason).binary());
    request.set_reason(reason);
    request.set_message("drained: maintenance");
    EXPECT_TRUE(core->unregister_node(conn_of(reason), request, now));
    commit();
    EXPECT_FALSE(alive(reason));
    EXPECT_EQ(take(sink.closes).conn, conn_of(reason));
  }
  EXPECT_EQ(core->view().cluster_status(now).recent_failures_size(), 0);
}

TEST_F(ClusterTest, OldReportsDoNotOverwriteNewOnes) {
  add_node(1, {{"CPU", 4}});
  proto::ResourceReport report;
  report.set_node_id(node_id(1).binary());
  report.set_incarnation(10);
  set_resources(report.mutable_available(), {{"CPU", 1}});
  EXPECT_TRUE(core->report_resources(conn_of(1), report, now));
  report.set_incarnation(9);
  set_resources(report.mutable_available(), {{"CPU", 3}});
  EXPECT_TRUE(core->report_resources(conn_of(1), report, now));
  EXPECT_EQ(core->view().cluster().find(node_id(1))->available.get("CPU"), 1);
  report.set_node_id(node_id(2).binary());
  EXPECT_EQ(core->report_resources(conn_of(1), report, now).error().code, Code::kNotFound);
  EXPECT_EQ(core->report_resources(77, report, now).error().code, Code::kNotFound);
}

TEST_F(ClusterTest, EachChangeOfADrainIsShown) {
  add_node(1, {{"CPU", 1}});
  auto drain = [&] { return core->view().cluster_status(now).nodes(0).drain(); };
  EXPECT_FALSE(core->view().cluster_status(now).nodes(0).has_drain());
  proto::ResourceReport report;
  report.set_node_id(node_id(1).binary());
  auto send = [&](proto::NodeDeath reason, const char* message) {
    report.set_incarnation(++incarnation);
    report.mutable_drain()->set_reason(reason);
    report.mutable_drain()->set_message(message);
    (void)core->report_resources(conn_of(1), report, now);
    core->check_invariants(now);
  };
  send(proto::DRAINED_IDLE, "it is idle");
  EXPECT_EQ(drain().message(), "it is idle");
  EXPECT_FALSE(core->view().cluster().find(node_id(1))->takes_work());
  send(proto::DRAINED_FOR_PREEMPTION, "the machine goes");
  EXPECT_EQ(drain().reason(), proto::DRAINED_FOR_PREEMPTION);
  EXPECT_EQ(drain().message(), "the machine goes");
  drop_node_pushes();
}

TEST_F(ClusterTest, WhatANodeReportsOfItsHealthIsShownUntilItReportsOtherwise) {
  add_node(1, {{"CPU", 4}});
  auto problem = [&] { return core->view().cluster_status(now).nodes(0).problem(); };
  EXPECT_EQ(problem(), "");
  proto::ResourceReport report;
  report.set_node_id(node_id(1).binary());
  for (const char* text : {"its object store hangs", ""}) {
    report.set_incarnation(++incarnation);
    report.set_problem(text);
    EXPECT_TRUE(core->report_resources(conn_of(1), report, now));
    EXPECT_EQ(problem(), text);
    EXPECT_EQ(core->view().get_nodes({}, now).nodes(0).problem(), text);
  }
  drop_node_pushes();
}

// The head was stopped: its timers are due, and it has not read yet what the nodes sent.
TEST_F(ClusterTest, AHeadThatWasStoppedReadsReportsBeforeItDeclaresNodesDead) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  set_time(now.steady_us + 10 * options.settings.node_timeout_ms * 1000);
  core->tick(now);
  commit();
  EXPECT_TRUE(alive(1) && alive(2));
  report(1, {{"CPU", 4}});
  advance(options.settings.node_timeout_ms - 1);
  EXPECT_TRUE(alive(1));
  EXPECT_FALSE(alive(2)) << "it was not heard afterwards either";
  sink.closes.clear();
  drop_node_pushes();
}

// The other nodes tell their drivers what they read in these pushes.
TEST_F(ClusterTest, TheBeginningAndTheEndOfAProblemAreToldToTheOtherNodes) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  advance(options.settings.heartbeat_interval_ms);
  drop_node_pushes();
  auto send_report = [&](int n, const char* problem) {
    proto::ResourceReport report;
    report.set_node_id(node_id(n).binary());
    set_resources(report.mutable_available(), {{"CPU", 4}});
    report.set_incarnation(++incarnation);
    report.set_problem(problem);
    EXPECT_TRUE(core->report_resources(conn_of(n), report, now));
  };
  // The problems of node 2 that node 1 has been told until its next heartbeat.
  using Problems = std::vector<std::string>;
  auto told = [&] {
    Problems problems;
    send_report(1, "");
    advance(options.settings.heartbeat_interval_ms);
    for (const auto& [conn, event] : sink.pushes) {
      for (const proto::Node& node : event.nodes()) {
        if (conn == conn_of(1) && node.node_id() == node_id(2).view())
          problems.push_back(node.problem());
      }
    }
    drop_node_pushes();
    return problems;
  };
  Problems first;
  for (int i = 0; i < 6 && first.empty(); ++i) first = told();
  ASSERT_EQ(first.size(), 1u);
  EXPECT_NE(first[0].find("has been silent"), std::string::npos) << first[0];
  EXPECT_EQ(told(), Problems()) << "the same is told once";
  for (const char* problem : {"", "its object store hangs", ""}) {
    send_report(2, problem);
    EXPECT_EQ(told(), Problems({problem}));
  }
}

TEST_F(ClusterTest, ANodeThatIsSilentHasAProblemBeforeItIsDead) {
  add_node(1, {{"CPU", 4}});
  auto problem = [&] { return core->view().get_nodes({}, now).nodes(0).problem(); };
  advance(options.settings.heartbeat_interval_ms);
  EXPECT_EQ(problem(), "");
  advance(options.settings.node_timeout_ms - options.settings.heartbeat_interval_ms - 1);
  EXPECT_NE(problem().find("has been silent"), std::string::npos) << problem();
  report(1, {{"CPU", 4}});
  EXPECT_EQ(problem(), "") << "it has been heard again";
  advance(options.settings.node_timeout_ms);
  EXPECT_FALSE(alive(1));
  EXPECT_EQ(problem(), "") << "a dead node has a death message instead";
  sink.closes.clear();
  commit();
  drop_node_pushes();
}

TEST_F(ClusterTest, ChangedResourcesReachOtherNodesRateLimited) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  advance(100);
  auto send = [&](double cpus) {
    proto::ResourceReport report;
    report.set_node_id(node_id(1).binary());
    report.set_incarnation(++incarnation);
    set_resources(report.mutable_available(), {{"CPU", cpus}});
    ASSERT_TRUE(core->report_resources(conn_of(1), report, now));
  };
  send(3);
  EXPECT_EQ(sink.pushes.size(), 2u);  // The first change reaches both nodes at once.
  sink.pushes.clear();
  for (int i = 0; i < 20; ++i) send(i % 2 ? 1 : 2);
  EXPECT_TRUE(sink.pushes.empty());
  advance(50);
  ASSERT_EQ(sink.pushes.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    auto push = take(sink.pushes);
    ASSERT_EQ(push.event.nodes_size(), 1);  // A push contains only the nodes that changed.
    EXPECT_EQ(ResourceSet::from_proto(push.event.nodes(0).available()).get("CPU"), 1);
  }
}

TEST_F(ClusterTest, ANewerConnectionReplacesTheOldOne) {
  add_node(1, {{"CPU", 4}});
  EXPECT_TRUE(register_node(900, registration(1, {{"CPU", 4}})).ok());
  EXPECT_EQ(take(sink.closes).conn, conn_of(1));
  core->connection_closed(conn_of(1), now);
  advance(3000);
  EXPECT_TRUE(alive(1));
  drop_node_pushes();
}

TEST_F(ClusterTest, ANewNodeManagerAtTheAddressOfALostOneEndsTheWait) {
  add_node(1, {{"CPU", 4}});
  core->connection_closed(conn_of(1), now);
  auto successor = registration(2, {{"CPU", 4}});
  successor.mutable_node()->set_ip("10.0.0.1");
  EXPECT_TRUE(register_node(conn_of(2), successor).ok());
  EXPECT_FALSE(alive(1));
  drop_node_pushes();
}

TEST_F(ClusterTest, TheIdOfALivingNodeIsRefusedFromElsewhere) {
  add_node(1, {{"CPU", 4}});
  for (bool other_ip : {true, false}) {
    auto impostor = registration(1, {{"CPU", 64}});
    if (other_ip) impostor.mutable_node()->set_ip("10.0.0.9");
    if (!other_ip) impostor.mutable_node()->set_port(7001);
    Error refused = register_node(900, impostor).error();
    EXPECT_EQ(refused.code, Code::kAlreadyExists);
    EXPECT_NE(refused.message.find("lives at 10.0.0.1:7000"), std::string::npos) << refused.message;
  }
  EXPECT_TRUE(sink.closes.empty());
  EXPECT_EQ(core->view().cluster().find(node_id(1))->conn, conn_of(1));
  EXPECT_TRUE(register_node(conn_of(1), registration(1, {{"CPU", 4}})).ok());
  drop_node_pushes();
}

TEST_F(ClusterTest, TheAddressOfALivingNodeIsRefusedToAnother) {
  add_node(1, {{"CPU", 4}});
  auto second = registration(2, {{"CPU", 4}});
  second.mutable_node()->set_ip("10.0.0.1");
  Error refused = register_node(conn_of(2), second).error();
  EXPECT_EQ(refused.code, Code::kAlreadyExists);
  EXPECT_NE(refused.message.find("10.0.0.1:7000 is the address of node " + node_id(1).hex()),
            std::string::npos)
      << refused.message;
  EXPECT_TRUE(alive(1));
  second.mutable_node()->set_port(7001);
  EXPECT_TRUE(register_node(conn_of(2), second).ok());
  drop_node_pushes();
}

TEST_F(ClusterTest, ASilentNodeDoesNotHoldItsAddress) {
  add_node(1, {{"CPU", 4}});
  // The connection has not broken, but no heartbeat has come for a while.
  advance(options.settings.heartbeat_interval_ms * 4);
  auto moved = registration(1, {{"CPU", 4}});
  moved.mutable_node()->set_ip("10.0.0.9");
  EXPECT_TRUE(register_node(900, moved).ok());
  EXPECT_EQ(take(sink.closes).conn, conn_of(1));
  drop_node_pushes();
}

TEST_F(ClusterTest, SubscribersHearOfNodes) {
  add_node(1, {{"CPU", 4}});
  proto::SubscribeRequest request;
  request.set_nodes(true);
  EXPECT_TRUE(core->subscribe(7, request, now));
  EXPECT_EQ(take(sink.pushes).event.nodes_size(), 1);
  lose_node_keeping_news(1);
  auto push = take(sink.pushes);
  EXPECT_EQ(push.conn, 7u);
  EXPECT_FALSE(push.event.nodes(0).alive());
  core->connection_closed(7, now);
  add_node(2, {});
}

TEST_F(ClusterTest, BadSubscriptionsAreRefused) {
  proto::SubscribeRequest request;
  request.add_actor_ids("short");
  EXPECT_EQ(core->subscribe(7, request, now).error().code, Code::kInvalid);
  proto::SubscribeRequest job;
  job.set_logs_of_job("toolong");
  EXPECT_EQ(core->subscribe(7, job, now).error().code, Code::kInvalid);
  options.settings.subscriptions_per_connection = 2;
  restart();
  proto::SubscribeRequest many;
  for (int i = 0; i < 3; ++i) many.add_actor_ids(make_actor_id(job_id_from_int(1), i, 0).binary());
  EXPECT_EQ(core->subscribe(7, many, now).error().code, Code::kResourceExhausted);
}

TEST_F(ClusterTest, DemandsOfNodesAreMerged) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  for (int n : {1, 2}) {
    proto::ResourceReport report;
    report.set_node_id(node_id(n).binary());
    report.set_incarnation(++incarnation);
    auto* small = report.add_demands();
    set_resources(small->mutable_resources(), {{"CPU", 1}});
    small->set_count(3);
    auto* gpu = report.add_demands();
    set_resources(gpu->mutable_resources(), {{"GPU", 1}});
    gpu->set_count(1);
    ASSERT_TRUE(core->report_resources(conn_of(n), report, now));
  }
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 2);
  for (const auto& demand : status.demands()) {
    bool gpu = demand.resources().units().contains("GPU");
    EXPECT_EQ(demand.count(), gpu ? 2 : 6);
    EXPECT_EQ(demand.infeasible(), gpu);
  }
  drop_node_pushes();
}

TEST_F(ClusterTest, DemandsThatWaitForDifferentThingsStayApartAndThoseLeftOutAreCounted) {
  options.settings.demands_per_node = 2;
  restart();
  add_node(1, {{"CPU", 4}});
  proto::ResourceReport report;
  report.set_node_id(node_id(1).binary());
  report.set_incarnation(++incarnation);
  for (const char* waits_for : {"", "a worker process", "its turn"}) {
    auto* demand = report.add_demands();
    set_resources(demand->mutable_resources(), {{"CPU", 1}});
    demand->set_count(3);
    demand->set_waits_for(waits_for);
  }
  report.set_demands_left_out(4);
  ASSERT_TRUE(core->report_resources(conn_of(1), report, now));
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 2);
  EXPECT_EQ(status.demands(0).waits_for(), "");
  EXPECT_EQ(status.demands(1).waits_for(), "a worker process");
  EXPECT_EQ(status.demands_left_out(), 7);
  drop_node_pushes();
}

TEST_F(ClusterTest, WhatWaitsWithoutADemandIsInTheStatusUntilItsNodeDies) {
  add_node(1, {{"CPU", 4}});
  add_node(2, {{"CPU", 4}});
  for (int n : {1, 2}) {
    proto::ResourceReport report;
    report.set_node_id(node_id(n).binary());
    report.set_incarnation(++incarnation);
    report.set_waiting_for_arguments(10 * n);
    report.set_waiting_for_actors(n);
    if (n == 2) report.mutable_store_waits()->add_waiters()->set_pid(7);
    ASSERT_TRUE(core->report_resources(conn_of(n), report, now));
  }
  auto status = core->view().cluster_status(now);
  EXPECT_EQ(status.waiting_for_arguments(), 30);
  EXPECT_EQ(status.waiting_for_actors(), 3);
  ASSERT_EQ(status.store_waits_size(), 1);
  EXPECT_EQ(status.store_waits(0).waiters(0).pid(), 7);
  proto::UnregisterNodeRequest leave;
  leave.set_node_id(node_id(2).binary());
  ASSERT_TRUE(core->unregister_node(conn_of(2), leave, now));
  commit();
  take(sink.closes);
  status = core->view().cluster_status(now);
  EXPECT_EQ(status.waiting_for_arguments(), 10);
  EXPECT_EQ(status.waiting_for_actors(), 1);
  EXPECT_EQ(status.store_waits_size(), 0);
  drop_node_pushes();
}

TEST_F(ClusterTest, ADemandThatOnlySomeNodesMeetIsInfeasibleWhenItsNodeSaysSo) {
  add_node(1, {{"CPU", 4}});
  proto::ResourceReport report;
  report.set_node_id(node_id(1).binary());
  report.set_incarnation(++incarnation);
  for (const char* where : {"", "a node where planet is in (mars)"}) {
    auto* demand = report.add_demands();
    set_resources(demand->mutable_resources(), {{"CPU", 1}});
    demand->set_count(3);
    demand->set_where(where);
    demand->set_infeasible(true);
  }
  ASSERT_TRUE(core->report_resources(conn_of(1), report, now));
  auto status = core->view().cluster_status(now);
  ASSERT_EQ(status.demands_size(), 2);
  EXPECT_FALSE(status.demands(0).infeasible());  // The head knows a node that has so much.
  EXPECT_TRUE(status.demands(1).infeasible());
  EXPECT_EQ(status.demands(1).where(), "a node where planet is in (mars)");
  drop_node_pushes();
}

}  // namespace
}  // namespace rt::head
