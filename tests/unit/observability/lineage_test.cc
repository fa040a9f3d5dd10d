// The tree of tasks: each task is below the task or actor that submitted it.
#include "observability/state/lineage.h"

#include <gtest/gtest.h>

namespace rt::state {
namespace {

Json task(const std::string& id, const std::string& name, const std::string& parent, int64_t at_ms,
          const std::string& state = "FINISHED") {
  return {{"task_id", id},
          {"name", name},
          {"parent_task_id", parent},
          {"type", "NORMAL_TASK"},
          {"state", state},
          {"creation_time_ms", at_ms},
          {"actor_id", nullptr},
          {"func_or_class_name", name}};
}

TEST(Lineage, ChildrenAreUnderTheirParentAndSiblingsOfOneNameInAGroup) {
  Json tree = lineage_of({task("c2", "child", "p", 30), task("p", "parent", "driver", 10),
                          task("c1", "child", "p", 20, "FAILED"), task("g", "grandchild", "c1", 25),
                          task("o", "other", "driver", 5)});
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree[0]["name"], "other");  // The oldest task comes first.
  const Json& parent = tree[1];
  EXPECT_EQ(parent["key"], "p");
  EXPECT_EQ(parent["link"]["id"], "p");
  EXPECT_EQ(parent["state_counts"], (Json{{"FAILED", 1}, {"FINISHED", 3}}));
  ASSERT_EQ(parent["children"].size(), 1u);
  const Json& group = parent["children"][0];
  EXPECT_EQ(group["type"], "GROUP");
  EXPECT_TRUE(group["link"].is_null());
  EXPECT_EQ(group["timestamp"], 20);
  ASSERT_EQ(group["children"].size(), 2u);
  EXPECT_EQ(group["children"][0]["key"], "c1");
  EXPECT_EQ(group["children"][0]["children"][0]["key"], "g");
}

TEST(Lineage, CallsAreUnderTheirActorAndAttemptsAreOneTask) {
  Json call = task("m1", "A.m", "driver", 7);
  call["type"] = "ACTOR_TASK";
  call["actor_id"] = "aa";
  call["func_or_class_name"] = "A.m";
  Json tree =
      lineage_of({call, task("r", "retried", "", 9, "FAILED"), task("r", "retried", "", 9)});
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree[0]["type"], "ACTOR");
  EXPECT_EQ(tree[0]["name"], "A");
  EXPECT_EQ(tree[0]["children"][0]["key"], "m1");
  EXPECT_EQ(tree[1]["state_counts"], (Json{{"FAILED", 1}, {"FINISHED", 1}}));
}

TEST(Lineage, ActorsAreUnderTheTaskThatCreatedThem) {
  auto of_actor = [](Json row, const char* type) {
    row["type"] = type;
    row["actor_id"] = "aa";
    row["func_or_class_name"] = row["name"];
    return row;
  };
  Json made = of_actor(task("i", "A.__init__", "t", 6), "ACTOR_CREATION_TASK"),
       call = of_actor(task("m", "A.m", "elsewhere", 8), "ACTOR_TASK");
  Json tree = lineage_of({call, made, task("t", "maker", "driver", 5)});
  ASSERT_EQ(tree.size(), 1u);
  EXPECT_EQ(tree[0]["key"], "t");
  ASSERT_EQ(tree[0]["children"].size(), 1u);
  const Json& actor = tree[0]["children"][0];
  EXPECT_EQ(actor["key"], "aa");
  EXPECT_EQ(actor["children"][0]["key"], "i");
  EXPECT_EQ(actor["children"][1]["key"], "m");
  // An actor that claims to have created itself does not make the tree endless.
  Json circle = of_actor(task("i", "A.__init__", "m", 6), "ACTOR_CREATION_TASK");
  EXPECT_EQ(lineage_of({call, circle}).size(), 1u);
}

TEST(Lineage, ParentsInACircleEndNothing) {
  EXPECT_EQ(
      lineage_of({task("a", "a", "b", 1), task("b", "b", "a", 2), task("s", "s", "s", 3)}).size(),
      2u);
  EXPECT_TRUE(lineage_of({}).empty());
}

}  // namespace
}  // namespace rt::state
