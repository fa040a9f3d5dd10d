#include "common/base/percent.h"

#include <gtest/gtest.h>

namespace rt {
namespace {

TEST(PercentTest, DecodesPairsOfDigitsAndLeavesTheRestAlone) {
  EXPECT_EQ(percent_decoded("a%20b%2Fc%e2%82%ac"), "a b/c\u20ac");
  EXPECT_EQ(percent_decoded("100%"), "100%");
  EXPECT_EQ(percent_decoded("%4"), "%4");
  EXPECT_EQ(percent_decoded("%zz%4g%41"), "%zz%4gA");
  EXPECT_EQ(percent_decoded("%00").size(), 1u);
}

TEST(PercentTest, PlusIsABlankInFormsOnly) {
  EXPECT_EQ(percent_decoded("a+b%2B"), "a+b+");
  EXPECT_EQ(percent_decoded("a+b%2B", Plus::kIsBlank), "a b+");
}

TEST(PercentTest, EncodesAllThatCouldMeanSomethingInAUrl) {
  EXPECT_EQ(percent_encoded("Az09-._~"), "Az09-._~");
  EXPECT_EQ(percent_encoded("a b/c?d&e=\u20ac%"), "a%20b%2Fc%3Fd%26e%3D%E2%82%AC%25");
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
}

TEST(PercentTest, AQueryKeepsTheOrderOfItsPairsAndThoseThatRepeat) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(query_pairs("a=1&b=x+y%26&a=2&c&=d&e="),
            (Pairs{{"a", "1"}, {"b", "x y&"}, {"a", "2"}, {"c", ""}, {"", "d"}, {"e", ""}}));
  EXPECT_EQ(query_pairs("a=b=c&&"), (Pairs{{"a", "b=c"}}));
  EXPECT_TRUE(query_pairs("").empty());
}

}  // namespace
}  // namespace rt
