// The pages of `rayctl top` and `rayctl debug`, and how they are cut to fit a screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "cli/commands/top_text.h"
#include "cli/debug/debug_text.h"
#include "cli/terminal/ending_signals.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/screen.h"
#include "common/base/ids.h"
#include "tests/unit/cli/samples.h"

namespace rt::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

proto::Node listed_node(const std::string& name, double total, double free) {
  proto::Node node;
  node.set_node_id(std::string(28, name[0]));
  node.set_name(name);
  node.set_ip("10.0.0.7");
  node.set_port(7);
  node.set_alive(true);
  *node.mutable_total() = resources_of({{"CPU", total}});
  *node.mutable_available() = resources_of({{"CPU", free}});
  return node;
}

// The id that the worker with this process id has here.
WorkerId worker_of(int pid) {
  std::string id = std::to_string(pid);
  id.resize(WorkerId::kSize, '.');
  return WorkerId::from_binary(id);
}

NodeSnapshot node_snapshot(const std::string& name, int first_pid,
                           std::vector<double> cpu_seconds) {
  NodeSnapshot snapshot{listed_node(name, 4, 1), true};
  snapshot.now.set_cpu_busy_seconds(30);
  snapshot.now.set_cpu_total_seconds(40);
  snapshot.before.set_cpu_busy_seconds(20);
  snapshot.before.set_cpu_total_seconds(20);
  snapshot.now.set_wall_time_us(12'000'000);
  snapshot.before.set_wall_time_us(10'000'000);
  for (double seconds : cpu_seconds) {
    for (auto* stats : {&snapshot.before, &snapshot.now}) {
      auto* usage = stats->add_processes();
      usage->set_pid(first_pid);
      usage->set_rss(first_pid << 20);
      usage->set_cpu_seconds(stats == &snapshot.now ? 5 + seconds : 5);
    }
    auto* info = snapshot.processes.add_processes();
    info->set_pid(first_pid);
    info->set_alive(true);
    info->set_worker_id(worker_of(first_pid++).binary());
  }
  return snapshot;
}

TEST(Top, BusiestWorkersOfAllNodesByWhatTheyDidSinceTheLastPage) {
  ClusterSnapshot snapshot;
  snapshot.nodes = {node_snapshot("east", 100, {0.2, 2.0}), node_snapshot("west", 200, {1.0})};
  snapshot.nodes.push_back({listed_node("mute", 4, 4)});
  snapshot.actors[worker_of(101)] = "Trainer 'one'";
  snapshot.tasks = {{"FINISHED", 7}, {"RUNNING", 2}};
  std::string text = top_text(snapshot, TopOrder::kCpu, 10, 2);
  EXPECT_THAT(
      text, AllOf(HasSubstr("Tasks: 7 FINISHED, 2 RUNNING\n"), HasSubstr("50%"),
                  HasSubstr("no answer"), HasSubstr("3.0/4.0"), HasSubstr("  3 nodes  session ")));
  EXPECT_THAT(text, HasSubstr("101  east  100%  101.00MiB  actor Trainer 'one'\n200  west  50%   "
                              "200.00MiB  worker\n... 1 more processes\n"));
  EXPECT_THAT(top_text(snapshot, TopOrder::kMemory, 1, 1),
              AllOf(HasSubstr("200  west"), HasSubstr("... 2 more nodes")));
  snapshot.nodes.resize(1);
  EXPECT_THAT(top_text(snapshot, TopOrder::kCpu, 10, 2), HasSubstr("  1 node  session "));
}

TEST(Debug, ShowsMissingResourcesAndTheirHolders) {
  WaitingSnapshot snapshot;
  *snapshot.status.add_nodes() = listed_node("east", 4, 1);
  *snapshot.status.add_nodes() = listed_node("west", 2, 0);
  auto* huge = snapshot.status.add_demands();
  huge->set_count(3);
  huge->set_what("huge");
  *huge->mutable_resources() = resources_of({{"CPU", 8}});
  auto* crowded = snapshot.status.add_demands();
  crowded->set_count(1);
  crowded->set_what("crowded");
  *crowded->mutable_resources() = resources_of({{"CPU", 2}});
  snapshot.tasks = {{{"state", "RUNNING"},
                     {"func_or_class_name", "train"},
                     {"required_resources", {{"CPU", 2.0}}}},
                    {{"state", "RUNNING"},
                     {"func_or_class_name", "train"},
                     {"required_resources", {{"CPU", 1.0}}}},
                    {{"state", "PENDING_ARGS_AVAIL"}, {"func_or_class_name", "join"}},
                    {{"state", "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"},
                     {"func_or_class_name", "Holder.add"},
                     {"worker_id", nullptr},
                     {"waits_for", "earlier calls: 20 are unanswered (actor_max_in_flight)"}},
                    {{"state", "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"},
                     {"func_or_class_name", "Holder.there"},
                     {"worker_id", "aa"}}};
  auto& actor = snapshot.actors.emplace_back();
  actor.set_state(proto::ACTOR_ALIVE);
  actor.set_pid(9);
  actor.mutable_spec()->set_class_name("Holder");
  *actor.mutable_spec()->mutable_creation()->mutable_resources() = resources_of({{"CPU", 1}});
  auto& job = snapshot.jobs.emplace_back();
  job.set_submission_id("nightly");
  job.set_status("RUNNING");
  job.set_pid(10);
  *job.mutable_entrypoint_resources() = resources_of({{"CPU", 0.5}});
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].why,
            "no node has 8.0 of CPU (the largest node has 4.0): it waits until one joins");
  EXPECT_EQ(all[1].what, "crowded {'CPU': 2.0}");
  EXPECT_EQ(all[1].why, "needs 2.0 of CPU (1.0 free)");
  EXPECT_THAT(all[1].holders,
              ElementsAre("2 running train: {'CPU': 3.0}", "actor Holder (pid 9): {'CPU': 1.0}",
                          "job nightly (pid 10): {'CPU': 0.5}"));
  EXPECT_EQ(all[2].what, "join");
  EXPECT_EQ(all[3].what, "Holder.there");
  EXPECT_THAT(all[3].why, HasSubstr("max_concurrency"));
  EXPECT_EQ(all[4].what, "Holder.add");
  EXPECT_EQ(all[4].why, "waits for earlier calls: 20 are unanswered (actor_max_in_flight)");
  EXPECT_THAT(debug_text(snapshot),
              AllOf(HasSubstr("at least 3x huge"), HasSubstr("\n1x join"),
                    HasSubstr("    held by actor Holder"), Not(HasSubstr("Nothing waits"))));
  const auto waiting = debug_json(snapshot)["waiting"];
  EXPECT_EQ(waiting.size(), 5u);
  EXPECT_TRUE(waiting[0]["count_is_least"].get<bool>());
  EXPECT_FALSE(waiting[2]["count_is_least"].get<bool>()) << "rows of tasks are counted";
  EXPECT_THAT(debug_text({}), HasSubstr("Nothing waits.\n"));
}

TEST(Debug, WithoutALivingNodeTheRemedyIsANode) {
  WaitingSnapshot snapshot;
  snapshot.head_address = "10.0.0.1:6379";
  auto& demand = *snapshot.status.add_demands();
  demand.set_count(1);
  demand.set_what("job j1");
  const std::string said =
      "\n1x job j1 {}\n    no node is alive: start one with `rayctl start "
      "--address=10.0.0.1:6379`\n";
  EXPECT_THAT(debug_text(snapshot), HasSubstr(said));
  *snapshot.status.add_nodes() = listed_node("dead", 4, 4);
  snapshot.status.mutable_nodes(0)->set_alive(false);
  EXPECT_THAT(debug_text(snapshot), HasSubstr(said));
  snapshot.status.mutable_nodes(0)->set_alive(true);
  EXPECT_THAT(debug_text(snapshot), Not(HasSubstr("no node is alive")));
}

TEST(Debug, WhatWaitsForABoundNamesIt) {
  WaitingSnapshot snapshot;
  *snapshot.status.add_nodes() = listed_node("a", 4, 4);
  auto& demand = *snapshot.status.add_demands();
  demand.set_count(96);
  demand.set_what("Actor");
  demand.set_waits_for("a worker process: the node is starting 32 others (a_setting)");
  snapshot.status.set_demands_left_out(7);
  for (int i = 0; i < 98; ++i) {
    auto& actor = snapshot.actors.emplace_back();
    actor.set_state(proto::ACTOR_PENDING);
    actor.mutable_spec()->set_class_name("Actor");
    actor.mutable_spec()->set_actor_id(std::string(ActorId::kSize, static_cast<char>(i)));
  }
  auto& again = snapshot.actors.emplace_back();
  again.set_state(proto::ACTOR_RESTARTING);
  again.mutable_spec()->set_class_name("Actor");
  again.mutable_spec()->set_actor_id(std::string(ActorId::kSize, 'r'));
  auto row = [](const char* state, const char* type, const char* name) {
    return api_json::Json{{"state", state}, {"type", type}, {"func_or_class_name", name}};
  };
  auto sent = row("PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY", "ACTOR_TASK", "turn");
  sent["worker_id"] = "aa";
  auto hung = row("SUBMITTED_TO_WORKER", "ACTOR_TASK", "Hung.call");
  hung["actor_id"] = "abc";
  // The constructors of two new actors run, another one waits, and one runs again.
  auto constructor = [&](const char* state, char id) {
    auto task = row(state, "ACTOR_CREATION_TASK", "Actor.__init__");
    task["actor_id"] = to_hex(std::string(ActorId::kSize, id));
    return task;
  };
  snapshot.tasks = {constructor("RUNNING", 0),
                    constructor("RUNNING", 1),
                    constructor("PENDING_ARGS_AVAIL", 2),
                    constructor("RUNNING", 'r'),
                    sent,
                    hung,
                    row("PENDING_NODE_ASSIGNMENT", "ACTOR_TASK", "unsent"),
                    row("PENDING_NODE_ASSIGNMENT", "NORMAL_TASK", "asks"),
                    row("SUBMITTED_TO_WORKER", "NORMAL_TASK", "ahead"),
                    row("PENDING_OBJ_STORE_MEM_AVAIL", "NORMAL_TASK", "large"),
                    row("PENDING_ARGS_FETCH", "ACTOR_TASK", "far"),
                    row("RUNNING", "NORMAL_TASK", "runs")};
  std::string text = debug_text(snapshot);
  EXPECT_THAT(
      text, AllOf(HasSubstr("96x Actor {}\n    waits for a worker process: the node is "
                            "starting 32 others (a_setting)"),
                  HasSubstr("7x task or actor with other resources"), HasSubstr("demands_per_node"),
                  HasSubstr("2x actor of Actor\n    its constructor has not returned")));
  EXPECT_THAT(text, AllOf(HasSubstr("1x turn\n"), HasSubstr("max_concurrency"),
                          HasSubstr("1x unsent\n    its actor is not alive yet"),
                          HasSubstr("1x ahead\n"), HasSubstr("pipeline_max_tasks"),
                          HasSubstr("1x Hung.call\n"), HasSubstr("the process of actor abc"),
                          HasSubstr("1x large\n"), HasSubstr("rayctl memory"),
                          HasSubstr("1x far\n"), HasSubstr("on their way to its node")));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("x asks")), Not(HasSubstr("x runs"))));
}

TEST(Debug, WhatWaitsForRoomNamesTheSettingAndWhoHoldsTheRoom) {
  WaitingSnapshot snapshot;
  const WorkerId driver = driver_worker_id(job_id_from_int(1));
  const NodeId node_id = NodeId::from_binary(std::string(NodeId::kSize, 'n'));
  auto& node = *snapshot.status.add_store_waits();
  node.set_node_id(node_id.binary());
  node.set_node_ip("10.0.0.7");
  node.set_used(66 << 20);
  node.set_capacity(80 << 20);
  node.set_fails_after_ms(5000);
  auto& waiter = *node.add_waiters();
  waiter.set_worker_id(driver.binary());
  waiter.set_pid(7);
  waiter.set_count(3);
  waiter.set_bytes(60 << 20);
  snapshot.stores = {
      {{"node_id", "another"}, {"holders", api_json::Json::array()}},
      {{"node_id", node_id.hex()},
       {"holders",
        {{{"worker_id", driver.hex()}, {"pid", 7}, {"bytes", 66 << 20}, {"objects", 1}}}}}};
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].what, "put or result of a task, of the driver of job 01000000 (pid 7)");
  EXPECT_THAT(all[0].why, AllOf(HasSubstr("object store of node 10.0.0.7"),
                                HasSubstr("60.00MiB wanted, 66.00MiB of 80.00MiB used"),
                                HasSubstr("after 5000 ms without room (create_wait_ms)")));
  EXPECT_THAT(all[0].holders,
              ElementsAre("the driver of job 01000000 (pid 7): 66.00MiB in 1 objects"));
}

TEST(Debug, ANodeThatDoesNotWorkAsItShouldIsNamed) {
  WaitingSnapshot snapshot;
  proto::Node& node = *snapshot.status.add_nodes();
  node.set_node_id(std::string(NodeId::kSize, 'n'));
  node.set_ip("10.0.0.7");
  node.set_alive(true);
  EXPECT_TRUE(explain(snapshot).empty());
  node.set_problem("its object store (process 7) has not answered since noon");
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0].what, AllOf(HasSubstr(to_hex(node.node_id())), HasSubstr("10.0.0.7")));
  EXPECT_EQ(all[0].why, node.problem());
  EXPECT_THAT(debug_text(snapshot), Not(HasSubstr("Nothing waits")));
}

TEST(Debug, ADemandNamesAllFunctionsThatWaitForTheSameResources) {
  WaitingSnapshot snapshot;
  *snapshot.status.add_nodes() = listed_node("a", 4, 0);
  auto& demand = *snapshot.status.add_demands();
  demand.set_count(3);
  demand.set_what("__main__.make");
  *demand.mutable_resources() = resources_of({{"CPU", 1}});
  auto add = [&](const char* function, double cpus) {
    snapshot.tasks.push_back({{"state", "PENDING_NODE_ASSIGNMENT"},
                              {"type", "NORMAL_TASK"},
                              {"func_or_class_name", function},
                              {"required_resources", {{"CPU", cpus}}}});
  };
  add("make", 1);
  add("large", 2);
  EXPECT_THAT(debug_text(snapshot), HasSubstr("3x __main__.make {'CPU': 1.0}\n"));
  add("make", 1);
  add("read", 1);
  EXPECT_THAT(debug_text(snapshot), HasSubstr("3x make (2), read (1) {'CPU': 1.0}\n"));
}

TEST(Debug, ATaskThatOnlySomeNodesMayRunSaysWhichOnes) {
  WaitingSnapshot snapshot;
  *snapshot.status.add_nodes() = listed_node("a", 4, 4);
  auto add = [&](const char* what, const char* where, bool infeasible) {
    auto& demand = *snapshot.status.add_demands();
    demand.set_count(2);
    demand.set_what(what);
    demand.set_where(where);
    demand.set_infeasible(infeasible);
    *demand.mutable_resources() = resources_of({{"CPU", 1}});
  };
  add("martian", "a node where planet is in (mars)", true);
  add("crowded", "a node where planet is in (earth)", false);
  EXPECT_THAT(debug_text(snapshot),
              AllOf(HasSubstr("2x martian, only on a node where planet is in (mars) {'CPU': 1.0}\n"
                              "    no node of that kind has that much, or none is alive"),
                    HasSubstr("2x crowded, only on a node where planet is in (earth) {'CPU': 1.0}\n"
                              "    other work uses what the nodes of that kind have")));
}

TEST(Debug, ATaskThatWaitsWithItsResultStillHoldsWhatItHas) {
  WaitingSnapshot snapshot;
  *snapshot.status.add_nodes() = listed_node("a", 4, 0);
  auto& demand = *snapshot.status.add_demands();
  demand.set_count(1);
  demand.set_what("next");
  *demand.mutable_resources() = resources_of({{"CPU", 1}});
  snapshot.tasks = {{{"state", "PENDING_OBJ_STORE_MEM_AVAIL"},
                     {"func_or_class_name", "big"},
                     {"start_time_ms", 1'700'000'000'000},
                     {"waits_for", "room for its result (create_wait_ms)"},
                     {"required_resources", {{"CPU", 4.0}}}},
                    {{"state", "PENDING_OBJ_STORE_MEM_AVAIL"},
                     {"func_or_class_name", "unstarted"},
                     {"required_resources", {{"CPU", 4.0}}}}};
  const std::string text = debug_text(snapshot);
  EXPECT_THAT(text, AllOf(HasSubstr("held by 1 running big"), Not(HasSubstr("running unstarted")),
                          HasSubstr("1x big\n    waits for room for its result (create_wait_ms)")));
}

TEST(Screen, PagesAreCutToItAndEscapesTakeNoRoom) {
  EXPECT_EQ(clipped("one\ntwo\n", 2, 80), "one\ntwo");
  EXPECT_EQ(clipped("one\ntwo\nthree\nfour\n", 3, 80), "one\ntwo\n... 2 more lines");
  EXPECT_EQ(clipped("abcdef\n", 5, 3), "abc");
  EXPECT_EQ(clipped("\x1b[1mabcdef\x1b[0m\n", 5, 3), "\x1b[1mabc\x1b[0m");
  EXPECT_EQ(clipped("\u00e4\u00f6\u00fcx", 5, 3), "\u00e4\u00f6\u00fc");
}

TEST(EndingSignals, AreThoseThatAreNotIgnored) {
  const auto before = ::signal(SIGHUP, SIG_DFL);
  sigset_t set = ending_signals();
  EXPECT_EQ(sigismember(&set, SIGHUP), 1);
  ::signal(SIGHUP, SIG_IGN);
  set = ending_signals();
  EXPECT_EQ(sigismember(&set, SIGHUP), 0) << "nohup has no effect";
  ::signal(SIGHUP, before);
}

TEST(Progress, ABarWhereTheWholeIsKnown) {
  EXPECT_EQ(progress_line("Uploading", 1, 2, "8MiB"),
            "Uploading [###############...............]  50% 8MiB");
  EXPECT_EQ(progress_line("Uploading", 9, 2, ""),
            "Uploading [##############################] 100%");
  EXPECT_EQ(progress_line("Writing:", 9, 0, "9 tasks"), "Writing: 9 tasks");
}

}  // namespace
}  // namespace rt::cli
