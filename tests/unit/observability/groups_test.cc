// Placement groups as rows, as events, and in the lines of the status.
#include "observability/state/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/readable.h"
#include "observability/state/cluster_events.h"
#include "observability/state/demand_text.h"
#include "observability/state/usage.h"
#include "tests/unit/observability/group_samples.h"

namespace rt::state {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHexA = to_hex(std::string(GroupId::kSize, 'a'));
const std::string kNodeX = to_hex(std::string(NodeId::kSize, 'x'));

TEST(GroupRow, HasEveryColumnAndTheDetailsOnlyOnRequest) {
  proto::GroupInfo group =
      group_of('a', {{{"CPU", 1}}, {{"CPU", 0.5}, {"GPU", 1}}}, proto::GroupSpec::STRICT_SPREAD);
  group.mutable_spec()->set_name("mine");
  group.mutable_spec()->set_detached(true);
  place(&group, "xy");
  Json row = group_row(group, {}, true);
  for (const Column& column : find_resource("placement_groups")->columns)
    EXPECT_TRUE(row.contains(column.name)) << column.name;
  EXPECT_EQ(row["placement_group_id"], kHexA);
  EXPECT_EQ(row["name"], "mine");
  EXPECT_EQ(row["creator_job_id"], "01000000");
  EXPECT_EQ(row["state"], "CREATED");
  EXPECT_EQ(row["is_detached"], true);
  EXPECT_EQ(row["strategy"], "STRICT_SPREAD");
  EXPECT_TRUE(row["why"].is_null());
  EXPECT_EQ(row["bundles"][1].dump(),
            R"({"bundle_id":{"placement_group_id":")" + kHexA +
                R"(","bundle_index":1},"unit_resources":{"CPU":0.5,"GPU":1.0},"node_id":")" +
                to_hex(std::string(NodeId::kSize, 'y')) + R"(","label_selector":{}})");
  EXPECT_FALSE(group_row(group, {}, false).contains("bundles"));
}

// The keys and the kinds of their values are those that Ray's list shows.
TEST(GroupRow, StatisticsOfAPlacedGroup) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}});
  place(&group, "x");
  group.set_placed_us(5'000);
  group.set_scheduling_us(2'000);
  group.set_attempts(1);
  EXPECT_EQ(group_row(group, {}, true)["stats"].dump(),
            R"({"creation_request_received_ns":"1700000000000000000",)"
            R"("scheduling_started_time_ns":"1700000000003000000",)"
            R"("scheduling_latency_us":"2000","end_to_end_creation_latency_us":"5000",)"
            R"("scheduling_attempt":1,"highest_retry_delay_ms":0.0,)"
            R"("scheduling_state":"FINISHED"})");
}

TEST(GroupRow, TheStatisticsSayWhatTheHeadDoes) {
  auto state_of = [](proto::GroupState state, int64_t attempts, bool infeasible,
                     const std::string& why = "") {
    proto::GroupInfo group = group_of('a', {{{"CPU", 1}}});
    group.set_state(state);
    group.set_attempts(attempts);
    group.set_infeasible(infeasible);
    group.set_why(why);
    return group_row(group, {}, true)["stats"]["scheduling_state"].get<std::string>();
  };
  EXPECT_EQ(state_of(proto::GROUP_PENDING, 0, false), "QUEUED");
  EXPECT_EQ(state_of(proto::GROUP_PENDING, 1, false), "SCHEDULING_STARTED");
  EXPECT_EQ(state_of(proto::GROUP_PENDING, 0, false, "no node has room"), "NO_RESOURCES");
  EXPECT_EQ(state_of(proto::GROUP_PENDING, 3, true, "too large"), "INFEASIBLE");
  EXPECT_EQ(state_of(proto::GROUP_PREPARED, 1, false), "SCHEDULING_STARTED");
  EXPECT_EQ(state_of(proto::GROUP_RESCHEDULING, 2, true), "INFEASIBLE");
  EXPECT_EQ(state_of(proto::GROUP_REMOVED, 1, false), "REMOVED");
}

TEST(GroupRow, SelectorsAndTheTopologyAreWrittenAsProgramsWriteThem) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}});
  auto add = [&](int bundle, const char* key, proto::LabelRule::Op op,
                 const std::vector<std::string>& values) {
    auto* rule = group.mutable_spec()->mutable_bundles(bundle)->mutable_selector()->add_rules();
    rule->set_key(key);
    rule->set_op(op);
    for (const auto& value : values) rule->add_values(value);
  };
  add(0, "region", proto::LabelRule::IN, {"eu"});
  add(0, "zone", proto::LabelRule::NOT_IN, {"b"});
  add(1, "region", proto::LabelRule::IN, {"eu", "us"});
  add(1, "zone", proto::LabelRule::NOT_IN, {"b", "c"});
  (*group.mutable_spec()->mutable_topology_strategy())["rack"] = "STRICT_PACK";
  Json row = group_row(group, {}, true);
  EXPECT_EQ(row["bundles"][0]["label_selector"].dump(), R"({"region":"eu","zone":"!b"})");
  EXPECT_EQ(row["bundles"][1]["label_selector"].dump(),
            R"j({"region":"in(eu,us)","zone":"!in(b,c)"})j");
  EXPECT_EQ(row["topology_strategy"].dump(), R"({"rack":"STRICT_PACK"})");
  EXPECT_EQ(row["topology_assignments"].dump(), "{}");
  place(&group, "xx");
  proto::GetNodesReply nodes;
  *nodes.add_nodes() = living_node('x', {}, {});
  (*nodes.mutable_nodes(0)->mutable_labels())["rack"] = "r7";
  EXPECT_EQ(group_row(group, nodes_by_id(nodes.nodes()), true)["topology_assignments"].dump(),
            R"({"rack":"r7"})");
}

TEST(GroupText, BundlesAreGroupedBySizeInTheirOrder) {
  proto::GroupInfo group =
      group_of('a', {{{"CPU", 64}}, {{"GPU", 1}}, {{"CPU", 64}}}, proto::GroupSpec::STRICT_PACK);
  EXPECT_EQ(homeless_text(group), "{'CPU': 64.0} * 2, {'GPU': 1.0} * 1 (STRICT_PACK)");
  place(&group, "x-x", proto::GROUP_RESCHEDULING);
  EXPECT_EQ(homeless_text(group), "{'GPU': 1.0} * 1 (STRICT_PACK)");
  EXPECT_EQ(bundle_shapes(group, false).size(), 2u);
  std::vector<std::map<std::string, double>> many;
  for (int i = 1; i <= 1000; ++i) many.push_back({{"CPU", i}});
  EXPECT_THAT(homeless_text(group_of('b', many)),
              HasSubstr("{'CPU': 8.0} * 1 and 992 more sizes (PACK)"));
}

TEST(GroupText, IndexesOfBundlesAreRanges) {
  EXPECT_EQ(bundles_text({3}), "bundle 3");
  EXPECT_EQ(bundles_text({0, 1, 2, 7}), "bundles 0-2, 7");
  EXPECT_EQ(bundles_text({0, 2, 4, 6, 8, 10, 11, 12}), "bundles 0, 2, 4, 6, 8 and 3 more");
}

TEST(GroupText, ARemovalIsSaidOnce) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}});
  EXPECT_EQ(removal_text(group), "it was removed");
  group.set_why("it was removed by the driver of job 01000000");
  EXPECT_EQ(removal_text(group), "it was removed by the driver of job 01000000");
}

TEST(GroupText, PlacesSayWhichBundlesAreWhere) {
  proto::GroupInfo group = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}, {{"CPU", 1}}});
  EXPECT_EQ(places_of(group).homeless, (std::vector<int>{0, 1, 2}));
  place(&group, "x-x", proto::GROUP_RESCHEDULING);
  BundlePlaces places = places_of(group);
  EXPECT_EQ(places.homeless, (std::vector<int>{1}));
  EXPECT_EQ(places.by_node[NodeId::from_binary(std::string(NodeId::kSize, 'x'))],
            (std::vector<int>{0, 2}));
}

TEST(GroupEvents, PlacingAndRemovalAreEvents) {
  proto::GroupInfo placed = group_of('a', {{{"CPU", 1}}, {{"CPU", 1}}});
  placed.mutable_spec()->set_name("mine");
  place(&placed, "xx");
  placed.set_placed_us(2'500'000);
  proto::GroupInfo removed = group_of('b', {{{"CPU", 1}}});
  removed.set_state(proto::GROUP_REMOVED);
  removed.set_why("job 01000000 has ended");
  removed.set_ended_ms(placed.created_ms() + 1000);
  placed.set_lost_ms(placed.created_ms() + 9000);
  placed.set_lost_why("bundle 1: node 10.0.0.2 is dead");
  auto events = cluster_events({}, {}, {placed, removed, group_of('c', {{{"CPU", 1}}})}, {});
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].label, "PLACEMENT_GROUP_RESCHEDULING");
  EXPECT_EQ(events[2].severity, "WARNING");
  EXPECT_THAT(events[2].message,
              HasSubstr("'mine' (" + kHexA + ") has lost bundle 1: node 10.0.0.2 is dead"));
  EXPECT_EQ(events[0].label, "PLACEMENT_GROUP_REMOVED");
  EXPECT_THAT(events[0].message, HasSubstr(": it was removed: job 01000000 has ended"));
  EXPECT_EQ(events[0].severity, "INFO");
  EXPECT_EQ(events[1].label, "PLACEMENT_GROUP_CREATED");
  EXPECT_EQ(events[1].time_ms, placed.created_ms() + 2500);
  EXPECT_EQ(events[1].message,
            "placement group 'mine' (" + kHexA + ") was placed: 2 bundles, PACK");
  EXPECT_EQ(events[1].custom_fields["placement_group_id"], kHexA);
  EXPECT_EQ(events[1].job_id, "01000000");
}

TEST(GroupUsage, OnlyWhatRunsCountsAsUsed) {
  proto::Node east = living_node('x', {{"CPU", 4}, {"memory", 4 << 20}}, {{"CPU", 1}});
  *east.mutable_available() = amounts({{"CPU", 1}, {"memory", 3 << 20}});
  *east.mutable_reserved() = amounts({{"CPU", 2}, {"memory", 1 << 20}});
  *east.mutable_reserved_used() = amounts({{"CPU", 0.5}});
  proto::Node west = living_node('y', {{"CPU", 2}}, {{"CPU", 2}});
  auto usage = usage_of({&east, &west});
  EXPECT_EQ(usage_text("CPU", usage["CPU"]),
            "1.5/6.0 CPU (0.5 used of 2.0 reserved in placement groups)");
  EXPECT_EQ(usage_text("memory", usage["memory"]),
            "0B/4.00MiB memory (0B used of 1.00MiB reserved in placement groups)");
  EXPECT_EQ(usage_text("CPU", usage_of({&west})["CPU"]), "0.0/2.0 CPU");
}

class DemandText : public testing::Test {
 protected:
  proto::Demand* demand(const std::string& what, double cpus, int64_t count, char group = 0,
                        int bundle = -1) {
    auto* one = status.add_demands();
    *one->mutable_resources() = amounts({{"CPU", cpus}});
    one->set_what(what);
    one->set_count(count);
    if (group) {
      one->set_group_id(std::string(GroupId::kSize, group));
      one->set_bundle_index(bundle);
    }
    return one;
  }
  proto::ClusterStatusReply status;
};

TEST_F(DemandText, TasksInGroupsAreCountedBesideTheOthers) {
  demand("f", 1, 2);
  demand("f", 1, 3, 'a', 0)->set_waits_for("bundle 0 of placement group a has its CPU in use");
  demand("f", 1, 4, 'b')->set_waits_for("no bundle of placement group b is here yet");
  demand("g", 4, 2);
  EXPECT_EQ(demand_lines(status),
            " {'CPU': 1.0}: 9+ pending tasks/actors (7+ using placement groups) [f]\n"
            "  waiting for bundle 0 of placement group a has its CPU in use\n"
            "  waiting for no bundle of placement group b is here yet\n"
            " {'CPU': 4.0}: 2+ pending tasks/actors [g]\n");
}

TEST_F(DemandText, ManyGroupsDoNotBuryThePage) {
  for (int i = 0; i < 100; ++i)
    demand("f", 1, 1, 'a', i)->set_waits_for("bundle " + std::to_string(i));
  EXPECT_EQ(demand_lines(status),
            " {'CPU': 1.0}: 100+ pending tasks/actors (100+ using placement groups) [f]\n"
            "  waiting for bundle 0\n  waiting for bundle 1\n  waiting for bundle 2\n"
            "  and for 97 more bundles\n");
  status.clear_demands();
  for (int i = 1; i <= 100; ++i) *status.add_pending_groups() = group_of('a', {{{"CPU", i}}});
  const std::string text = demand_lines(status);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_THAT(text, HasSubstr(" and 80+ more pending placement groups"));
}

TEST_F(DemandText, GroupsThatWaitAreLinesOfTheirBundles) {
  for (char id : {'a', 'b'}) {
    proto::GroupInfo group = group_of(id, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::SPREAD);
    group.set_why("bundle 0 {'CPU': 1} finds no room now");
    *status.add_pending_groups() = group;
  }
  proto::GroupInfo huge = group_of('c', {{{"CPU", 64}}}, proto::GroupSpec::STRICT_PACK);
  huge.mutable_spec()->set_name("huge\x1b[31m");
  huge.set_infeasible(true);
  huge.set_why("bundle 0 {'CPU': 64} fits on no node: the nearest, 10.0.0.7, lacks 60 CPU");
  *status.add_pending_groups() = huge;
  proto::GroupInfo lost = group_of('d', {{{"CPU", 1}}, {{"x", 1}}});
  place(&lost, "x-", proto::GROUP_RESCHEDULING);
  lost.set_why("no node has x");
  *status.add_pending_groups() = lost;
  EXPECT_EQ(demand_lines(status),
            " {'CPU': 1.0} * 2 (SPREAD): 2+ pending placement groups\n  placement group " + kHexA +
                ": bundle 0 {'CPU': 1} finds no room now\n"
                " {'CPU': 64.0} * 1 (STRICT_PACK): 1+ pending placement groups (infeasible: the "
                "living nodes are too small or too few; they wait until one joins)\n"
                "  placement group 'huge\\x1b[31m' (" +
                to_hex(std::string(GroupId::kSize, 'c')) +
                "): bundle 0 {'CPU': 64} fits on no node: the nearest, 10.0.0.7, lacks 60 CPU\n"
                " {'x': 1.0} * 1 (PACK): 1+ pending placement groups\n  placement group " +
                to_hex(std::string(GroupId::kSize, 'd')) +
                ", which lost bundles with their nodes: no node has x\n");
}

TEST_F(DemandText, NothingThatWaitsIsSaid) {
  EXPECT_EQ(demand_lines(status), " (no resource demands)\n");
}

}  // namespace
}  // namespace rt::state
