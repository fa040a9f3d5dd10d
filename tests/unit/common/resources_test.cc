// ResourceSet: fixed-point amounts, arithmetic and the wire form.
#include "common/resources/resource_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/proto/common.pb.h"

namespace rt {
namespace {

ResourceSet set_of(const std::map<std::string, double>& amounts) {
  return *ResourceSet::from_map(amounts);
}

TEST(ResourceSet, RefusesAmountsThatMakeNoSense) {
  for (double bad : {-1.0, 0.00001, 1e300, std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto result = ResourceSet::from_map({{"a", bad}});
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, Code::kInvalid);
    EXPECT_NE(result.error().message.find('a'), std::string::npos);
  }
  EXPECT_TRUE(set_of({{"a", 0}}).empty());
}

TEST(ResourceSet, TenthsAddUpExactly) {
  ResourceSet total = set_of({{"CPU", 1}});
  for (int i = 0; i < 10; ++i) total.subtract(set_of({{"CPU", 0.1}}));
  EXPECT_TRUE(total.empty());
}

TEST(ResourceSet, ContainsAddsAndOwes) {
  ResourceSet node = set_of({{"CPU", 2}, {"a", 0.5}});
  EXPECT_TRUE(node.contains(set_of({{"CPU", 2}})));
  EXPECT_FALSE(node.contains(set_of({{"CPU", 2.5}})));
  EXPECT_FALSE(node.contains(set_of({{"GPU", 1}})));
  node.subtract_allowing_debt(set_of({{"CPU", 3}}));
  EXPECT_EQ(node.get("CPU"), -1.0);
  node.add(set_of({{"CPU", 3}}));
  EXPECT_EQ(node.to_string(), "{'CPU': 2.0, 'a': 0.5}");
}

TEST(ResourceSet, ASumEndsAtTheMostThatUnitsCount) {
  ResourceSet cluster;
  for (int node = 0; node < 20; ++node) cluster.add(set_of({{"memory", ResourceSet::kMaxAmount}}));
  EXPECT_EQ(cluster.units("memory"), INT64_MAX);
}

TEST(ResourceSet, TravelsAndDropsWhatAPeerMayNotSend) {
  proto::Resources wire;
  set_of({{"CPU", 2}, {"a", 0.5}}).to_proto(&wire);
  EXPECT_EQ(ResourceSet::from_proto(wire), set_of({{"CPU", 2}, {"a", 0.5}}));
  (*wire.mutable_units())["bad"] = -5;
  EXPECT_EQ(ResourceSet::from_proto(wire).units("bad"), 0);
}

}  // namespace
}  // namespace rt
