#include "common/base/byte_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace rt {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST(ByteReader, FieldsComeInTheirOrder) {
  ByteReader reader("\x01\x02\x03\x03\0\0\0abcrest"sv);
  EXPECT_EQ(reader.number<uint8_t>(), 1);
  EXPECT_EQ(reader.number<uint16_t>(), 0x0302);
  EXPECT_EQ(reader.text(), "abc");
  EXPECT_EQ(reader.left(), 4U);
  EXPECT_FALSE(reader.at_end());
  EXPECT_EQ(reader.text(4), "rest");
  EXPECT_TRUE(reader.ok() && reader.at_end());
  EXPECT_TRUE(reader.take(0).empty());
  EXPECT_TRUE(reader.ok());
}

TEST(ByteReader, AfterAReadOverTheEndThereIsNothing) {
  for (int field = 0; field < 5; ++field) {
    ByteReader reader("\x05\x01\x02"sv);
    switch (field) {
      case 0: EXPECT_EQ(reader.number<uint32_t>(), 0U); break;
      case 1: EXPECT_TRUE(reader.take(4).empty()); break;
      case 2: EXPECT_TRUE(reader.text().empty()); break;
      case 3: EXPECT_EQ(reader.count(1), 0U); break;
      default: EXPECT_TRUE(reader.text(~size_t{0}).empty());
    }
    EXPECT_FALSE(reader.ok()) << field;
    EXPECT_TRUE(reader.at_end()) << field;
    EXPECT_EQ(reader.number<uint8_t>(), 0) << field;
  }
}

TEST(ByteReader, ACountMustFitIntoTheRest) {
  const std::string elements = "\x02\0\0\0abcdef"s;
  EXPECT_EQ(ByteReader(elements).count(3), 2U);
  ByteReader larger(elements);
  EXPECT_EQ(larger.count(4), 0U);
  EXPECT_FALSE(larger.ok());
}

TEST(ByteReader, AVarintHasItsLimit) {
  ByteReader reader("\x7f\x80\x01"sv);
  EXPECT_EQ(reader.varint(), 127U);
  EXPECT_EQ(reader.varint(), 128U);
  EXPECT_TRUE(reader.ok());
  std::string largest(kMaxVarintBytes - 1, '\xff');
  largest += '\x01';
  EXPECT_EQ(ByteReader(largest).varint(), ~uint64_t{0});
  ByteReader endless(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_EQ(endless.varint(), 0U);
  EXPECT_FALSE(endless.ok());
  ByteReader cut("\x80"sv);
  (void)cut.varint();
  EXPECT_FALSE(cut.ok());
}

}  // namespace
}  // namespace rt
