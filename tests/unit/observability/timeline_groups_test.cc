// The lives of placement groups in the trace.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "observability/events/timeline.h"
#include "tests/unit/observability/event_samples.h"
#include "tests/unit/observability/group_samples.h"

namespace rt {
namespace {

using nlohmann::json;

constexpr int64_t kStartMs = 1'700'000'000'000;

// A group that was created `at_ms` after kStartMs, and lived `for_ms`; 0: it lives.
proto::GroupInfo group_at(char id, int64_t at_ms, int64_t for_ms, int64_t placed_us = 500) {
  proto::GroupInfo group = group_of(id, {{{"CPU", 1}}, {{"CPU", 1}}}, proto::GroupSpec::SPREAD);
  group.set_created_ms(kStartMs + at_ms);
  group.set_placed_us(placed_us);
  group.set_state(placed_us ? proto::GROUP_CREATED : proto::GROUP_PENDING);
  if (for_ms == 0) return group;
  group.set_ended_ms(group.created_ms() + for_ms);
  group.set_state(proto::GROUP_REMOVED);
  return group;
}

class TimelineGroups : public testing::Test {
 protected:
  // Returns the trace as of `now_ms` after kStartMs.
  json trace(Timeline::Options options = {}, int64_t now_ms = 1000) {
    std::string text;
    Timeline timeline(std::move(options));
    timeline.add_groups(groups, (kStartMs + now_ms) * 1000, &text);
    timeline.end(&text);
    shown = timeline.groups_shown();
    left_out = timeline.groups_left_out();
    EXPECT_EQ(timeline.shown(), 0) << "they are neither tasks nor calls";
    return json::parse(text);
  }
  void add(proto::GroupInfo group) { *groups.add_groups() = std::move(group); }

  proto::ListGroupsReply groups;
  int64_t shown = 0, left_out = 0;
};

json args_of(char id, const char* name, const char* why = nullptr) {
  json args = {{"placement_group_id", to_hex(std::string(GroupId::kSize, id))},
               {"name", name},
               {"strategy", "SPREAD"},
               {"bundles", 2}};
  if (why) args["why"] = why;
  return args;
}

TEST_F(TimelineGroups, AGroupWaitsIsCreatedLosesBundlesAndEnds) {
  proto::GroupInfo group = group_at('a', 0, 300);
  group.mutable_spec()->set_name("bad \xff\"name");
  group.set_why("it was removed");
  group.set_lost_ms(kStartMs + 200);
  group.set_lost_why("node 10.0.0.1 died");
  add(group);
  json events = trace();
  ASSERT_EQ(events.size(), 3u);
  const char* name = "bad \uFFFD\"name";
  EXPECT_EQ(events[0], (json{{"cat", "placement_group"},
                             {"name", "waiting"},
                             {"pid", "placement groups"},
                             {"tid", "row 1"},
                             {"ts", 1.7e15},
                             {"dur", 500.0},
                             {"ph", "X"},
                             {"cname", "bad"},
                             {"args", args_of('a', name)}}));
  EXPECT_EQ(events[1], (json{{"cat", "placement_group"},
                             {"name", "created"},
                             {"pid", "placement groups"},
                             {"tid", "row 1"},
                             {"ts", 1.7e15 + 500},
                             {"dur", 299'500.0},
                             {"ph", "X"},
                             {"cname", "good"},
                             {"args", args_of('a', name, "it was removed")}}));
  EXPECT_EQ(events[2], (json{{"cat", "placement_group"},
                             {"name", "lost bundles"},
                             {"pid", "placement groups"},
                             {"tid", "row 1"},
                             {"ts", 1.7e15 + 200'000},
                             {"ph", "i"},
                             {"s", "t"},
                             {"args", args_of('a', name, "node 10.0.0.1 died")}}));
}

TEST_F(TimelineGroups, SpansReachUntilNowOrUntilTheGroupWasRemoved) {
  add(group_at('a', 0, 0));
  add(group_at('b', 1, 0, 0));
  groups.mutable_groups(1)->set_why("no node has room");
  add(group_at('c', 2, 30, 0));  // This group was removed before it had a place.
  json events = trace({}, 100);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1]["dur"], 99'500.0);
  EXPECT_TRUE(events[2]["name"] == "waiting" && events[2]["dur"] == 99'000.0);
  EXPECT_EQ(events[2]["args"]["why"], "no node has room");
  EXPECT_TRUE(events[3]["name"] == "waiting" && events[3]["dur"] == 30'000.0);
  // The clock of the reader is behind that of the head.
  for (const json& event : trace({}, -100)) EXPECT_GE(event["dur"], 0.0);
}

TEST_F(TimelineGroups, ARowShowsOneGroupAfterTheOther) {
  add(group_at('a', 0, 100));
  add(group_at('b', 50, 100));
  add(group_at('c', 100, 10));  // 'a' has just ended.
  add(group_at('d', 120, 0));
  add(group_at('e', 130, 5));
  add(group_at('f', 200, 0));
  std::map<std::string, std::string> rows;
  for (const json& event : trace())
    rows[event["args"]["placement_group_id"].get<std::string>().substr(0, 2)] = event["tid"];
  EXPECT_EQ(rows, (std::map<std::string, std::string>{{"61", "row 1"},
                                                      {"62", "row 2"},
                                                      {"63", "row 1"},
                                                      {"64", "row 1"},
                                                      {"65", "row 3"},
                                                      {"66", "row 2"}}));
}

TEST_F(TimelineGroups, OfManyThoseAreDrawnThatLiveOrEndedLast) {
  add(group_at('a', 0, 0));
  for (int i = 0; i < Timeline::kMostGroups + 9; ++i) add(group_at('b', i, 1));
  json events = trace({}, 5000);
  EXPECT_EQ(shown, Timeline::kMostGroups);
  EXPECT_EQ(left_out, 10);
  EXPECT_EQ(static_cast<int64_t>(events.size()), 2 * Timeline::kMostGroups + 1);
  EXPECT_EQ(events[0]["name"], "10 placement groups are left out");
  EXPECT_EQ(events[0]["ph"], "i");
  EXPECT_EQ(events[1]["args"]["placement_group_id"], to_hex(std::string(GroupId::kSize, 'a')));
  EXPECT_EQ(events[3]["ts"], 1.7e15 + 10'000) << "the oldest that ended are left out";
  std::set<std::string> rows;
  for (const json& event : events) rows.insert(event["tid"]);
  EXPECT_EQ(rows.size(), 2u);
}

TEST_F(TimelineGroups, OneJobAndTheLastMinutes) {
  add(group_at('a', 0, 100));
  add(group_at('b', 0, 200));
  groups.mutable_groups(1)->mutable_spec()->set_job_id(job_id_from_int(2).binary());
  EXPECT_EQ(trace().size(), 4u);
  EXPECT_EQ(trace({.job = job_id_from_int(2)})[0]["args"], args_of('b', ""));
  EXPECT_EQ(trace({.job = job_id_from_int(3)}), json::array());
  EXPECT_EQ(trace({.since_us = (kStartMs + 101) * 1000}).size(), 2u);
}

TEST_F(TimelineGroups, OverHttpTheyAreANumberedProcessBesideTheNodes) {
  std::string text;
  Timeline timeline({.numbered = true});
  timeline.add(batch_of({event_of(1, 2)}), &text);
  add(group_at('a', 0, 100));
  timeline.add_groups(groups, kStartMs * 1000, &text);
  timeline.end(&text);
  json events = json::parse(text);
  ASSERT_EQ(events.size(), 10u);
  EXPECT_TRUE(events[4]["pid"] == 1 && events[4]["tid"] == 1);
  EXPECT_EQ(events[4]["args"], args_of('a', ""));
  std::map<std::string, json> names;
  for (size_t i = 6; i < 10; ++i)
    names[events[i]["args"]["name"]] = json{events[i]["pid"], events[i]["tid"]};
  EXPECT_EQ(names, (std::map<std::string, json>{{"Node 10.0.0.7", {0, nullptr}},
                                                {"placement groups", {1, nullptr}},
                                                {"worker:abcd", {0, 0}},
                                                {"row 1", {1, 1}}}));
}

}  // namespace
}  // namespace rt
