// The page of `rayctl status`, and nodes and resources as JSON.
#include "observability/state/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/output.h"
#include "common/base/ids.h"
#include "common/base/readable.h"
#include "tests/unit/cli/samples.h"

namespace rt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

proto::Node node_of(char id, bool head, const std::map<std::string, double>& total,
                    const std::map<std::string, double>& available) {
  proto::Node node;
  node.set_node_id(std::string(28, id));
  node.set_ip("10.0.0.7");
  node.set_port(4242);
  node.set_hostname("box");
  node.set_node_manager_socket("/s/raylet");
  node.set_object_store_socket("/s/plasma_store");
  node.set_alive(true);
  node.set_is_head(head);
  *node.mutable_total() = resources_of(total);
  *node.mutable_available() = resources_of(available);
  return node;
}

TEST(StatusText, TheProblemOfANodeStandsBelowIt) {
  proto::ClusterStatusReply status;
  proto::Node node = node_of('\x11', false, {{"CPU", 2}}, {{"CPU", 1}});
  *status.add_nodes() = node;
  EXPECT_THAT(state::status_text(status, false), Not(HasSubstr("Warning")));
  status.mutable_nodes(0)->set_problem("its object store hangs");
  EXPECT_THAT(state::status_text(status, false),
              HasSubstr("11\n   Warning: its object store hangs\nIdle:\n"));
  EXPECT_EQ(state::status_json(status)["node_problems"][0]["problem"], "its object store hangs");
}

TEST(StatusText, AnEmptyClusterLooksAsTheContractShows) {
  proto::ClusterStatusReply status;
  status.set_wall_time_ms(1'700'000'000'000);
  std::map<std::string, double> all = {{"CPU", 2},
                                       {"memory", 17362308218.0},
                                       {"object_store_memory", 7440995188.0},
                                       {"node:10.0.0.7", 1}};
  *status.add_nodes() = node_of('\x11', true, all, all);
  std::string text = state::status_text(status, false);
  EXPECT_THAT(text, HasSubstr("======== Autoscaler status: 2023-11-1"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Node status\n---------------------------------------------------------------\nActive:\n "
          "1 node_1111111111"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "Pending:\n (no pending nodes)\nRecent failures:\n (no failures)\n\nResources\n-----"));
  EXPECT_THAT(text, HasSubstr("Total Usage:\n 0.0/2.0 CPU\n 0B/16.17GiB memory\n 0B/6.93GiB "
                              "object_store_memory\n\nFrom request_resources:\n (none)\n"
                              "Pending Demands:\n (no resource demands)\n"));
  EXPECT_THAT(text, Not(HasSubstr("node:10")));
}

TEST(StatusText, UsageDemandsAndFailuresAreShown) {
  proto::ClusterStatusReply status;
  status.set_wall_time_ms(1'700'000'000'000);
  *status.add_nodes() = node_of('\x11', true, {{"CPU", 4}, {"a", 1}}, {{"CPU", 1.5}, {"a", 1}});
  *status.add_nodes() = node_of('\x22', false, {{"CPU", 2}}, {{"CPU", 2}});
  proto::Node dead = node_of('\x33', false, {{"CPU", 64}}, {{"CPU", 64}});
  dead.set_alive(false);
  *status.add_nodes() = dead;
  auto* demand = status.add_demands();
  *demand->mutable_resources() = resources_of({{"CPU", 8}});
  demand->set_count(3);
  demand->set_infeasible(true);
  demand->set_what("__main__.big");
  auto* held_up = status.add_demands();
  held_up->set_count(96);
  held_up->set_waits_for("a worker process (a_setting)");
  auto* martian = status.add_demands();
  martian->set_count(2);
  martian->set_what("__main__.f");
  martian->set_where("a node where planet is in (mars)");
  martian->set_infeasible(true);
  status.set_demands_left_out(7);
  status.add_recent_failures("node_33: NodeTerminated (ip: 10.0.0.9)");
  std::string text = state::status_text(status, true);
  EXPECT_THAT(text, HasSubstr(" 2.5/6.0 CPU\n 0.0/1.0 a\n"));
  EXPECT_THAT(text, HasSubstr("Idle:\n 1 node_2222"));
  EXPECT_THAT(text, HasSubstr(" {'CPU': 8.0}: 3+ pending tasks/actors (infeasible"));
  EXPECT_THAT(text, HasSubstr("__main__.big"));
  EXPECT_THAT(text, HasSubstr("96+ pending tasks/actors\n  waiting for a worker process "
                              "(a_setting)\n"));
  EXPECT_THAT(text,
              HasSubstr(" {}: 2+ pending tasks/actors (infeasible: no such node has that much; "
                        "they wait until one joins) [__main__.f, only on a node where planet "
                        "is in (mars)]\n and 7+ more"));
  EXPECT_THAT(text, HasSubstr("demands_per_node"));
  EXPECT_THAT(text, HasSubstr(" node_33: NodeTerminated (ip: 10.0.0.9)\n"));
  EXPECT_THAT(text, HasSubstr("Usage:\n  2.5/4.0 CPU\n"));
}

TEST(StatusText, WhatWaitsForNoResourceIsShownOnlyWhenThereIsAny) {
  proto::ClusterStatusReply status;
  *status.add_nodes() = node_of('\x11', true, {{"CPU", 4}}, {{"CPU", 4}});
  EXPECT_TRUE(state::status_text(status, false).ends_with("(no resource demands)\n"));
  status.set_waiting_for_arguments(12);
  status.set_waiting_for_actors(5);
  auto* node = status.add_store_waits();
  node->set_node_ip("10.0.0.7");
  node->set_used(66 << 20);
  node->set_capacity(80 << 20);
  node->set_fails_after_ms(5000);
  auto* waiter = node->add_waiters();
  waiter->set_worker_id(driver_worker_id(job_id_from_int(1)).binary());
  waiter->set_pid(7);
  waiter->set_count(3);
  waiter->set_bytes(60 << 20);
  waiter->set_since_ms(1'700'000'000'000);
  EXPECT_THAT(
      state::status_text(status, false),
      HasSubstr(
          "Waiting for arguments that are not made yet:\n 12 tasks, calls or actors\n"
          "Waiting for actors that have actor_max_in_flight unanswered calls of one caller, or run "
          "as many calls at a time as max_concurrency or the group allows:\n 5 calls\n"
          "Waiting for room in object stores:\n"
          " 3 puts or results of tasks of the driver of job 01000000 (pid 7): 60.00MiB since " +
          local_time(1'700'000'000'000) +
          "\n  node 10.0.0.7: 66.00MiB of 80.00MiB used; puts and results fail after 5000 ms "
          "without room (create_wait_ms)\n"));
  const auto json = state::status_json(status);
  EXPECT_EQ(json["waiting_for_arguments"], 12);
  EXPECT_EQ(json["waiting_for_actors"], 5);
  EXPECT_EQ(json["store_waits"][0]["create_wait_ms"], 5000);
  EXPECT_EQ(json["store_waits"][0]["waiting"][0]["kind"], "VALUES");
}

TEST(StatusText, ReservationsAndDemandsOfPlacementGroupsAreShown) {
  proto::ClusterStatusReply status;
  proto::Node node = node_of('\x11', false, {{"CPU", 4}}, {{"CPU", 1}});
  *node.mutable_reserved() = resources_of({{"CPU", 3}});
  *node.mutable_reserved_used() = resources_of({{"CPU", 2}});
  *status.add_nodes() = node;
  auto* demand = status.add_demands();
  *demand->mutable_resources() = resources_of({{"CPU", 1}});
  demand->set_count(2);
  demand->set_group_id(std::string(GroupId::kSize, 'g'));
  demand->set_bundle_index(1);
  auto* group = status.add_pending_groups();
  group->mutable_spec()->set_group_id(std::string(GroupId::kSize, 'h'));
  group->mutable_spec()->set_name("mine");
  for (int i = 0; i < 2; ++i)
    *group->mutable_spec()->add_bundles()->mutable_resources() = resources_of({{"CPU", 8}});
  group->set_infeasible(true);
  group->set_why("too large");
  const std::string text = state::status_text(status, true);
  EXPECT_THAT(text, HasSubstr("Total Usage:\n 2.0/4.0 CPU (2.0 used of 3.0 reserved in placement "
                              "groups)\n\n"));
  EXPECT_THAT(text, HasSubstr(" Usage:\n  2.0/4.0 CPU (2.0 used of 3.0 reserved"));
  EXPECT_THAT(text, HasSubstr(" {'CPU': 1.0}: 2+ pending tasks/actors (2+ using placement "
                              "groups)\n {'CPU': 8.0} * 2 (PACK): 1+ pending placement groups "
                              "(infeasible"));
  // A node with reservations is not idle, even if nothing runs in them.
  EXPECT_THAT(text, HasSubstr("Active:\n 1 node_1111"));
  const auto json = state::status_json(status);
  EXPECT_EQ(json["reserved_resources"].dump(), R"({"CPU":{"reserved":3.0,"used":2.0}})");
  EXPECT_EQ(json["pending_demands"][0]["bundle_index"], 1);
  const auto& waiting = json["pending_placement_groups"][0];
  EXPECT_EQ(waiting["name"], "mine");
  EXPECT_EQ(waiting["state"], "PENDING");
  EXPECT_EQ(waiting["strategy"], "PACK");
  EXPECT_EQ(waiting["bundles"].dump(), R"([{"resources":{"CPU":8.0},"count":2}])");
  EXPECT_EQ(waiting["why"], "too large");
  EXPECT_EQ(waiting["infeasible"], true);
}

TEST(StatusText, NamesDoNotPaintTheTerminal) {
  proto::ClusterStatusReply status;
  proto::Node node =
      node_of('\x11', true, {{"CPU", 4}, {"we\x1b[31mird", 1}}, {{"CPU", 4}, {"we\x1b[31mird", 1}});
  node.set_name("ev\x1b[31mil \u202e");
  *status.add_nodes() = node;
  auto* demand = status.add_demands();
  *demand->mutable_resources() = resources_of({{"we\x1b[31mird", 8}});
  demand->set_what("\x1b]0;x\x07");
  status.add_recent_failures("\x1b");
  const std::string text = state::status_text(status, true);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("Node: ev\\x1b[31mil \\u202e ("));
  EXPECT_THAT(text, HasSubstr("'we\\x1b[31mird': 8.0"));
}

TEST(StatusText, WithoutNodesItSaysSo) {
  EXPECT_TRUE(state::status_text({}, false).starts_with("No cluster status."));
}

TEST(StatusText, StorageThatFailsIsSaidFirst) {
  proto::ClusterStatusReply status;
  EXPECT_TRUE(state::status_json(status)["storage_failure"].is_null());
  status.set_storage_failure("storage is failing: no space");
  EXPECT_TRUE(state::status_text(status, false)
                  .starts_with("The head's storage is failing: no space\nNo cluster status."));
  *status.add_nodes() = node_of('\x11', true, {}, {});
  EXPECT_THAT(state::status_text(status, false),
              HasSubstr("========\nThe head's storage is failing: no space\nNode status\n"));
  EXPECT_EQ(state::status_json(status)["storage_failure"], "storage is failing: no space");
}

TEST(NodeJson, HasTheKeysOfRayNodesInOrder) {
  auto json = api_json::node_json(node_of('\xab', true, {{"CPU", 2}}, {{"CPU", 1}}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{
                      "NodeID", "Alive", "NodeManagerAddress", "NodeManagerHostname",
                      "NodeManagerPort", "ObjectManagerPort", "ObjectStoreSocketName",
                      "RayletSocketName", "MetricsExportPort", "MetricsAgentPort",
                      "DashboardAgentListenPort", "NodeName", "RuntimeEnvAgentPort", "DeathReason",
                      "DeathReasonMessage", "alive", "Resources", "Labels"}));
  EXPECT_EQ(json["Resources"].dump(), R"({"CPU":2.0})");
  EXPECT_EQ(json["Labels"]["ray.io/node-id"], json["NodeID"]);
  EXPECT_EQ(json["NodeName"], "10.0.0.7");
}

TEST(NodeJson, SumsCountLiveNodesAndLeaveOutWhatIsUsedUp) {
  proto::Node dead = node_of('\x33', false, {{"CPU", 64}}, {{"CPU", 64}});
  dead.set_alive(false);
  dead.set_death_reason(proto::UNEXPECTED_TERMINATION);
  std::vector<proto::Node> nodes = {node_of('\x11', true, {{"CPU", 0.1}, {"a", 1}}, {{"CPU", 0.1}}),
                                    node_of('\x22', false, {{"CPU", 0.2}}, {{"CPU", 0.2}}), dead};
  EXPECT_EQ(api_json::resources_json(nodes, api_json::Amount::kTotal).dump(),
            R"({"CPU":0.3,"a":1.0})");
  EXPECT_EQ(api_json::resources_json(nodes, api_json::Amount::kAvailable).dump(), R"({"CPU":0.3})");
  EXPECT_EQ(api_json::node_json(dead)["Resources"].dump(), "{}");
  EXPECT_EQ(api_json::node_json(dead)["DeathReason"], 2);
}

TEST(Output, SizesAreReadableAndTablesAligned) {
  EXPECT_EQ(binary_bytes(0), "0B");
  EXPECT_EQ(binary_bytes(1023), "1023B");
  EXPECT_EQ(binary_bytes(1536), "1.50KiB");
  EXPECT_EQ(amount(2), "2.0");
  EXPECT_EQ(amount(0.25), "0.25");
  EXPECT_EQ(table({{"A", "B"}, {"long", "x"}, {"", ""}, {"y", "z  "}}),
            "A     B\nlong  x\n\ny     z\n");
}

}  // namespace
}  // namespace rt::cli
