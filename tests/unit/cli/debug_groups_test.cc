// The explanations of `rayctl debug` for placement groups, and for what waits in them.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/debug/debug_text.h"
#include "tests/unit/observability/group_samples.h"

namespace rt::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string group_hex(char id) { return to_hex(std::string(GroupId::kSize, id)); }

class DebugGroups : public testing::Test {
 protected:
  DebugGroups() {
    *snapshot.status.add_nodes() = living_node('1', {{"CPU", 4}}, {{"CPU", 1}});
    *snapshot.status.add_nodes() = living_node('2', {{"CPU", 2}}, {{"CPU", 0}});
  }
  proto::Demand* demand(char group, int bundle, const std::string& waits_for = "") {
    auto* one = snapshot.status.add_demands();
    one->set_what("f");
    one->set_count(3);
    *one->mutable_resources() = amounts({{"CPU", 1}});
    one->set_group_id(std::string(GroupId::kSize, group));
    one->set_bundle_index(bundle);
    one->set_waits_for(waits_for);
    return one;
  }
  api_json::Json running(const std::string& function, double cpus, char group = 0) {
    return {{"state", "RUNNING"},
            {"func_or_class_name", function},
            {"placement_group_id", group ? api_json::Json(group_hex(group)) : api_json::Json()},
            {"required_resources", {{"CPU", cpus}}}};
  }
  void add_actor(const std::string& name, double cpus, char group = 0) {
    auto& actor = snapshot.actors.emplace_back();
    actor.set_state(proto::ACTOR_ALIVE);
    actor.set_pid(9);
    actor.mutable_spec()->set_class_name(name);
    *actor.mutable_spec()->mutable_creation()->mutable_resources() = amounts({{"CPU", cpus}});
    if (group)
      actor.mutable_spec()->mutable_creation()->set_group_id(std::string(GroupId::kSize, group));
  }
  WaitingSnapshot snapshot;
};

TEST_F(DebugGroups, AGroupThatWaitsSaysWhyAndWhoHoldsTheResources) {
  proto::GroupInfo waiting =
      group_of('a', {{{"CPU", 2}}, {{"CPU", 2}}}, proto::GroupSpec::STRICT_SPREAD);
  waiting.mutable_spec()->set_name("mine");
  waiting.set_why("bundle 1 {'CPU': 2} finds no room: the nearest, 10.0.0.1, lacks 1 CPU");
  proto::GroupInfo holder = group_of('b', {{{"CPU", 2}}});
  place(&holder, "2");
  snapshot.groups = {waiting, holder};
  snapshot.tasks = {running("train", 3), running("inside", 1, 'b')};
  add_actor("Inside", 1, 'b');
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].what,
            "placement group 'mine' (" + group_hex('a') + ") {'CPU': 2.0} * 2 (STRICT_SPREAD)");
  EXPECT_EQ(all[0].why, "bundle 1 {'CPU': 2} finds no room: the nearest, 10.0.0.1, lacks 1 CPU");
  // A task inside of a group holds nothing beside what the group holds.
  EXPECT_THAT(all[0].holders, ElementsAre("1 running train: {'CPU': 3.0}",
                                          "placement group " + group_hex('b') + ": {'CPU': 2.0}"));
}

TEST_F(DebugGroups, AnInfeasibleGroupWaitsForNodesAndNotForHolders) {
  proto::GroupInfo huge = group_of('a', {{{"CPU", 64}}});
  huge.set_infeasible(true);
  huge.set_why("bundle 0 {'CPU': 64} fits on no node: the nearest, 10.0.0.1, lacks 60 CPU");
  snapshot.groups = {huge};
  snapshot.tasks = {running("train", 3)};
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].why,
            "bundle 0 {'CPU': 64} fits on no node: the nearest, 10.0.0.1, lacks 60 CPU; the "
            "living nodes are too small or too few: it waits until one joins");
  EXPECT_THAT(all[0].holders, IsEmpty());
}

TEST_F(DebugGroups, LostBundlesAreNamedWithThoseThatRemain) {
  proto::GroupInfo lost = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  place(&lost, "1--", proto::GROUP_RESCHEDULING);
  lost.set_why("no node has room");
  proto::GroupInfo writing = group_of('b', {{{"CPU", 1}}});
  writing.set_state(proto::GROUP_PREPARED);
  snapshot.groups = {lost, writing};
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].why,
            "lost bundles 1-2 with their nodes, and still has bundle 0 on 10.0.0.1 "
            "(313131313131); no node has room");
  EXPECT_THAT(all[1].why, HasSubstr("the head writes its record"));
}

TEST_F(DebugGroups, TasksInAFullBundleSayWhoIsInIt) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}});
  place(&group, "11");
  snapshot.groups = {group};
  snapshot.tasks = {running("outside", 1),
                    running("inside", 1, 'a'),
                    {{"state", "PENDING_NODE_ASSIGNMENT"},
                     {"func_or_class_name", "f"},
                     {"placement_group_id", group_hex('a')},
                     {"waits_for", "room in bundle 1"},
                     {"required_resources", {{"CPU", 1.0}}}}};
  add_actor("Inside", 0.5, 'a');
  demand('a', 1, "bundle 1 of placement group aa has its CPU in use");
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].what, "f {'CPU': 1.0} in bundle 1 of placement group " + group_hex('a'));
  EXPECT_EQ(all[0].why, "waits for bundle 1 of placement group aa has its CPU in use");
  EXPECT_THAT(all[0].holders,
              ElementsAre("1 running inside: {'CPU': 1.0}", "actor Inside (pid 9): {'CPU': 0.5}"));
}

// The demand is on its way to the head, or is among those that a node does not list.
TEST_F(DebugGroups, WithoutADemandTheOwnerOfATaskSaysWhyItWaits) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}});
  place(&group, "1");
  snapshot.groups = {group};
  snapshot.tasks = {{{"state", "PENDING_NODE_ASSIGNMENT"},
                     {"func_or_class_name", "f"},
                     {"placement_group_id", group_hex('a')},
                     {"waits_for", "room in bundle 0 of placement group aa"}}};
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].why, "waits for room in bundle 0 of placement group aa");
}

TEST_F(DebugGroups, TasksWaitForTheStateOfTheirGroup) {
  proto::GroupInfo pending = group_of('p', {{{"CPU", 9}}});
  pending.set_why("no node has 9 CPU");
  proto::GroupInfo removed = group_of('r', {{{"CPU", 1}}});
  removed.set_state(proto::GROUP_REMOVED);
  removed.set_why("remove_placement_group() was called by job 01000000");
  proto::GroupInfo lost = group_of('l', {{{"CPU", 1}}, {{"CPU", 1}}});
  place(&lost, "1-", proto::GROUP_RESCHEDULING);
  lost.set_why("no node has room");
  snapshot.groups = {pending, removed, lost};
  demand('p', -1);
  demand('r', 0);
  demand('l', 1);
  demand('u', 0);
  demand('l', 0, "its CPU is in use");
  auto all = explain(snapshot);
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[0].what, "f {'CPU': 1.0} in any bundle of placement group " + group_hex('p'));
  EXPECT_EQ(all[0].why, "the group waits for nodes itself: no node has 9 CPU");
  EXPECT_EQ(all[1].why,
            "it was removed: remove_placement_group() was called by job 01000000; they wait until "
            "they are cancelled");
  EXPECT_EQ(all[2].why,
            "the group lost bundle 1 with its node, and looks for others: no node has room");
  EXPECT_THAT(all[3].why, HasSubstr("the head does not know this placement group"));
  EXPECT_EQ(all[4].why, "waits for its CPU is in use");
}

class DebugFunctions : public DebugGroups {
 protected:
  DebugFunctions() {
    proto::GroupInfo group = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}});
    place(&group, "11");
    snapshot.groups = {group};
  }
  void add_demand(const char* what, int64_t count, int bundle, const char* waits_for) {
    auto* one = demand('a', bundle, waits_for);
    one->set_what(what);
    one->set_count(count);
  }
  void add_row(const char* type, const char* function, const char* name) {
    snapshot.tasks.push_back({{"state", "PENDING_NODE_ASSIGNMENT"},
                              {"type", type},
                              {"func_or_class_name", function},
                              {"name", name},
                              {"placement_group_id", group_hex('a')},
                              {"required_resources", {{"CPU", 1.0}}}});
  }
  void add_waiting_actor(const char* name) {
    add_actor(name, 1, 'a');
    snapshot.actors.back().set_state(proto::ACTOR_PENDING);
    add_row("ACTOR_CREATION_TASK", (std::string(name) + ".__init__").c_str(),
            (std::string(name) + ".__init__").c_str());
  }
  // Returns "3 f" for each explanation.
  std::vector<std::string> waiting() const {
    std::vector<std::string> all;
    for (const Explanation& one : explain(snapshot))
      all.push_back(fmt::format("{} {}", one.count, one.what.substr(0, one.what.find(" {"))));
    return all;
  }
};

// The head sends the demand of the actor, and a node that of the tasks.
TEST_F(DebugFunctions, AnActorAndTasksThatWaitForTheSameAreNamedOnce) {
  add_demand("A", 1, -1, "placement group aa has no bundle with room for it");
  add_demand("PlacementGroup.ready", 1, -1, "a bundle of placement group aa: its CPU is in use");
  add_waiting_actor("A");
  add_row("NORMAL_TASK", "placement_group_ready", "PlacementGroup.ready");
  EXPECT_THAT(waiting(), ElementsAre("1 A", "1 PlacementGroup.ready"));
  // Further classes and functions have no demand of their own.
  add_waiting_actor("B");
  add_row("NORMAL_TASK", "f", "f");
  snapshot.status.mutable_demands(0)->set_count(2);
  snapshot.status.mutable_demands(1)->set_count(2);
  EXPECT_THAT(waiting(), ElementsAre("2 A (1), B (1)", "2 f (1), placement_group_ready (1)"));
}

TEST_F(DebugFunctions, DemandsOfSeveralBundlesNameEachItsOwnFunction) {
  add_demand("__main__.f", 2, 0, "bundle 0: its CPU is in use");
  add_demand("mine", 1, 1, "bundle 1: its CPU is in use");
  add_row("NORMAL_TASK", "f", "f");
  add_row("NORMAL_TASK", "f", "f");
  add_row("NORMAL_TASK", "g", "mine");
  EXPECT_THAT(waiting(), ElementsAre("2 __main__.f", "1 mine"));
  // The rows do not tell which bundle it waits for.
  add_row("NORMAL_TASK", "h", "h");
  snapshot.status.mutable_demands(0)->set_count(3);
  EXPECT_THAT(waiting(), ElementsAre("3 f or h", "1 g or h"));
}

TEST_F(DebugGroups, ATableShowsWhichGroupsHoldWhatOfEachNode) {
  EXPECT_THAT(debug_text(snapshot), Not(HasSubstr("Placement groups hold")));
  proto::GroupInfo a = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  a.mutable_spec()->set_name("mi\x1b[31mne");
  place(&a, "121");
  proto::GroupInfo removed = group_of('r', {{{"CPU", 1}}});
  place(&removed, "1", proto::GROUP_REMOVED);
  snapshot.groups = {a, removed};
  const std::string text = debug_text(snapshot);
  EXPECT_THAT(text,
              AllOf(HasSubstr("Nothing waits.\nPlacement groups hold:\nNODE"),
                    HasSubstr("mi\\x1b[31mne  bundles 0, 2  {'CPU': 2.0}\n"),
                    HasSubstr("bundle 1      {'CPU': 1.0}\n"), Not(HasSubstr(group_hex('r')))));
  auto json = debug_json(snapshot)["placement_groups"];
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["node_ip"], "10.0.0.1");
  EXPECT_EQ(json[0]["bundles"].dump(), "[0,2]");
  EXPECT_EQ(json[0]["resources"].dump(), R"({"CPU":2.0})");
}

}  // namespace
}  // namespace rt::cli
