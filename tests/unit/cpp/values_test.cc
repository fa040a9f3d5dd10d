// Values of the C++ API: encoding as msgpack and decoding again, and errors for values that do not
// fit.
#include <gtest/gtest.h>
#include <ray/api.h>

#include <map>
#include <unordered_map>

using ray::internal::Decode;
using ray::internal::Encode;
using ray::internal::EncodedValue;
using ray::internal::RayException;
using ray::internal::StoredValue;
using ray::internal::ValueFormat;

struct Point {
  int x = 0;
  std::string label;
  std::vector<double> weights;
  MSGPACK_DEFINE(x, label, weights);
  bool operator==(const Point& o) const {
    return x == o.x && label == o.label && weights == o.weights;
  }
};
enum class Colour { kRed = 1, kBlue = 7 };
MSGPACK_ADD_ENUM(Colour);

namespace {

template <class T, class As = T>
As round_trip(const T& value) {
  EncodedValue encoded = Encode(value);
  return Decode<As>(
      StoredValue{ValueFormat::kMsgpack, encoded.bytes.data(), encoded.bytes.size(), nullptr});
}

TEST(Values, BasicTypesKeepTheirValue) {
  EXPECT_EQ(round_trip(42), 42);
  EXPECT_EQ(round_trip(-(int64_t{1} << 40)), -(int64_t{1} << 40));
  EXPECT_EQ(round_trip(true), true);
  EXPECT_DOUBLE_EQ(round_trip(2.5), 2.5);
  EXPECT_EQ(round_trip(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ((round_trip(std::vector<uint8_t>{1, 2, 255})), (std::vector<uint8_t>{1, 2, 255}));
}

TEST(Values, ContainersAndUserTypes) {
  Point p{3, "three", {1.5, -2}};
  EXPECT_EQ(round_trip(p), p);
  std::unordered_map<std::string, std::vector<Point>> nested{{"a", {p, p}}, {"b", {}}};
  EXPECT_EQ(round_trip(nested), nested);
  EXPECT_EQ(round_trip(Colour::kBlue), Colour::kBlue);
}

TEST(Values, AnIntegerReadsAsADouble) { EXPECT_DOUBLE_EQ((round_trip<int, double>(3)), 3.0); }

TEST(Values, AnyHoldsTheListedTypes) {
  EXPECT_FALSE(round_trip(std::any()).has_value());
  EXPECT_EQ(std::any_cast<bool>(round_trip(std::any(true))), true);
  EXPECT_EQ(std::any_cast<uint64_t>(round_trip(std::any(uint64_t{7}))), 7u);
  EXPECT_EQ(std::any_cast<int64_t>(round_trip(std::any(int64_t{-7}))), -7);
  EXPECT_EQ(std::any_cast<double>(round_trip(std::any(0.5))), 0.5);
  EXPECT_EQ(std::any_cast<std::string>(round_trip(std::any(std::string("s")))), "s");
  EXPECT_EQ(std::any_cast<std::vector<char>>(round_trip(std::any(std::vector<char>{'a', 0}))),
            (std::vector<char>{'a', 0}));
  EXPECT_THROW(round_trip(std::any(Point())), std::exception);
}

TEST(Values, AWrongTypeIsAnErrorThatNamesIt) {
  try {
    round_trip<std::string, Point>("no point");
    FAIL();
  } catch (const RayException& e) {
    EXPECT_NE(std::string(e.what()).find("Point"), std::string::npos) << e.what();
  }
}

TEST(Values, BrokenBytesAreAnError) {
  std::string broken = "\x93\x01";
  EXPECT_THROW(Decode<std::vector<int>>(
                   StoredValue{ValueFormat::kMsgpack, broken.data(), broken.size(), nullptr}),
               RayException);
  EXPECT_THROW(Decode<int>(StoredValue{ValueFormat::kMsgpack, nullptr, 0, nullptr}), RayException);
}

TEST(Values, RawBytesReadAsBinAndNothingAsNil) {
  StoredValue raw{ValueFormat::kRaw, "xyz", 3, nullptr};
  EXPECT_EQ(Decode<std::string>(raw), "xyz");
  EXPECT_EQ(Decode<std::vector<char>>(raw), (std::vector<char>{'x', 'y', 'z'}));
  EXPECT_FALSE(Decode<std::any>(StoredValue{}).has_value());
  EXPECT_THROW(Decode<int>(StoredValue{}), RayException);
}

TEST(Resources, WrongAmountsAreErrors) {
  using ray::internal::CheckResources;
  EXPECT_NO_THROW(CheckResources({{"CPU", 0.5}, {"a", 2}}));
  EXPECT_THROW(CheckResources({{"", 1}}), RayException);
  EXPECT_THROW(CheckResources({{"CPU", 0}}), RayException);
  EXPECT_THROW(CheckResources({{"CPU", 1.5}}), RayException);
  EXPECT_THROW(CheckResources({{"CPU", -1}}), RayException);
}

}  // namespace
