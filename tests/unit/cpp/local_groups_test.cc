// Placement groups of the C++ API as far as they need no cluster: local mode refuses them, and
// options that can never be met are refused before anything is sent.
#include <functional>

#include "local_mode.h"

namespace local_groups {

using namespace ray::internal;

int GroupTwice(int x) { return 2 * x; }

class GroupHolder {
 public:
  static GroupHolder* Create(int x) { return new GroupHolder{x}; }
  int Value() { return value; }
  int value;
};

RAY_REMOTE(GroupTwice, GroupHolder::Create, &GroupHolder::Value);

using LocalGroups = LocalMode;

// A group as a cluster would give it, with a bundle of 2 CPUs and one of 1 CPU and 4 R.
ray::PlacementGroup group_of_two() {
  GroupRecord record;
  record.id = std::string(18, 'g');
  record.name = "two";
  record.bundles = {{{"CPU", 2}}, {{"CPU", 1}, {"R", 4}}};
  record.strategy = 1;
  record.state = 2;
  return ray::PlacementGroup(record);
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const RayException& e) {
    return e.what();
  }
  return "no exception";
}

TEST_F(LocalGroups, EverythingNeedsACluster) {
  const std::string text = "Placement groups need a cluster: this program runs in local mode.";
  EXPECT_EQ(refusal([] {
              ray::CreatePlacementGroup({"name", {{{"CPU", 1}}}, ray::PlacementStrategy::PACK});
            }),
            text);
  EXPECT_EQ(refusal([] { ray::RemovePlacementGroup(std::string(18, 'g')); }), text);
  EXPECT_EQ(refusal([] { ray::GetAllPlacementGroups(); }), text);
  EXPECT_EQ(refusal([] { ray::GetPlacementGroupById(std::string(18, 'g')); }), text);
  EXPECT_EQ(refusal([] { ray::GetPlacementGroup("name"); }), text);
  EXPECT_EQ(refusal([] { group_of_two().Wait(1); }), text);
  EXPECT_EQ(refusal([] { ray::Task(GroupTwice).SetPlacementGroup(group_of_two(), 0).Remote(1); }),
            text);
  EXPECT_EQ(refusal([] {
              ray::Actor(GroupHolder::Create).SetPlacementGroup(group_of_two(), 0).Remote(1);
            }),
            text);
}

TEST_F(LocalGroups, AnEmptyGroupIsNone) {
  ray::PlacementGroup none;
  EXPECT_TRUE(none.Empty());
  EXPECT_EQ(none.GetID(), "");
  EXPECT_EQ(none.GetState(), ray::PlacementGroupState::UNRECOGNIZED);
  EXPECT_EQ(none.GetStrategy(), ray::PlacementStrategy::UNRECOGNIZED);
  EXPECT_EQ(refusal([&] { none.Wait(1); }), "An empty PlacementGroup cannot be waited for.");
  EXPECT_EQ(*ray::Task(GroupTwice).SetPlacementGroup(none, -1).Remote(4).Get(), 8);
  auto holder = ray::Actor(GroupHolder::Create).SetPlacementGroup(none, 0).SetName("h").Remote(5);
  EXPECT_EQ(*holder.Task(&GroupHolder::Value).Remote().Get(), 5);
}

TEST(Groups, SayWhatTheyAre) {
  ray::PlacementGroup group = group_of_two();
  EXPECT_FALSE(group.Empty());
  EXPECT_EQ(group.GetID(), std::string(18, 'g'));
  EXPECT_EQ(group.GetName(), "two");
  EXPECT_EQ(group.GetBundles().size(), 2u);
  EXPECT_EQ(group.GetBundles()[1].at("R"), 4);
  EXPECT_EQ(group.GetState(), ray::CREATED);
  EXPECT_EQ(group.GetStrategy(), ray::PlacementStrategy::SPREAD);
}

TEST(Groups, OptionsThatCanNeverBeMetAreRefused) {
  auto said = [](std::unordered_map<std::string, double> resources, int bundle_index) {
    CallOptions options;
    options.resources = std::move(resources);
    options.group = group_of_two().record();
    options.bundle_index = bundle_index;
    return refusal([&] { CheckOptions(options); });
  };
  EXPECT_EQ(said({{"CPU", 2}}, 0), "no exception");
  EXPECT_EQ(said({{"CPU", 1}, {"R", 4}}, -1), "no exception");
  EXPECT_EQ(said({}, 1), "no exception");
  EXPECT_NE(said({{"CPU", 1}}, 2).find("has no bundle 2: it has 2"), std::string::npos);
  EXPECT_NE(said({{"CPU", 1}}, -2).find("has no bundle -2"), std::string::npos);
  for (const auto& resources : std::vector<std::unordered_map<std::string, double>>{
           {{"CPU", 3}}, {{"CPU", 2}, {"R", 1}}, {{"GPU", 1}}})
    EXPECT_NE(said(resources, -1).find("fit into no bundle"), std::string::npos);
  EXPECT_NE(said({{"CPU", 0}}, 0).find("cannot be 0"), std::string::npos);
}

}  // namespace local_groups
