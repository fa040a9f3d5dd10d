// Pickles of plain Python values as C++ reads them, by way of msgpack.
#include "plain_pickle.h"

#include <gtest/gtest.h>
#include <msgpack.hpp>

#include <sstream>

#include "ray/api/exceptions.h"

namespace ray::internal {
namespace {

using namespace std::string_literals;

// The text that msgpack prints for the value of `pickle`.
std::string text_of(const std::string& pickle) {
  std::string packed = msgpack_of_pickle(pickle);
  msgpack::object_handle handle = msgpack::unpack(packed.data(), packed.size());
  std::ostringstream out;
  out << handle.get();
  return out.str();
}

std::string complaint(const std::string& pickle) {
  try {
    msgpack_of_pickle(pickle);
  } catch (const RayException& e) {
    return e.what();
  }
  return "none";
}

// The bytes are those that CPython 3.11 writes with protocol 5.
TEST(PlainPickle, ReadsScalars) {
  EXPECT_EQ(text_of("\x80\x05N."s), "null");
  EXPECT_EQ(text_of("\x80\x05\x88."s), "true");
  EXPECT_EQ(text_of("\x80\x05\x89."s), "false");
  EXPECT_EQ(text_of("\x80\x05K\x07."s), "7");
  EXPECT_EQ(text_of("\x80\x05M\x2c\x01."s), "300");
  EXPECT_EQ(text_of("\x80\x05J\xff\xff\xff\xff."s), "-1");
  EXPECT_EQ(text_of("\x80\x05\x8a\x06\x00\x00\x00\x00\x00\x01."s), "1099511627776");  // 2**40
  EXPECT_EQ(text_of("\x80\x05\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s),
            "-9223372036854775808");  // -2**63
  EXPECT_EQ(text_of("\x80\x05\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00."s),
            "18446744073709551615");  // 2**64 - 1
  EXPECT_EQ(text_of("\x80\x05\x95\x0a\x00\x00\x00\x00\x00\x00\x00G?\xf8\x00\x00\x00\x00\x00\x00."s),
            "1.5");
  EXPECT_EQ(text_of("\x80\x05\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94."s), "\"hi\"");
}

TEST(PlainPickle, ReadsContainers) {
  EXPECT_EQ(text_of("\x80\x05\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02K\x03\x65."s),
            "[1,2,3]");
  EXPECT_EQ(text_of("\x80\x05K\x01K\x02\x86\x94."s), "[1,2]");
  EXPECT_EQ(text_of("\x80\x05}\x94(\x8c\x01\x61\x94K\x01\x8c\x01\x62\x94]\x94u."s),
            "{\"a\":1,\"b\":[]}");
  // The pickle holds the text once and refers to it twice.
  EXPECT_EQ(text_of("\x80\x05]\x94(\x8c\x01x\x94h\x01\x65."s), "[\"x\",\"x\"]");
}

TEST(PlainPickle, NamesWhatCppCannotRead) {
  EXPECT_NE(complaint("\x80\x05\x8f\x94."s).find("a set"), std::string::npos);
  EXPECT_NE(complaint("\x80\x05\x8c\x01m\x94\x8c\x01\x43\x94\x93\x94."s).find("Python class"),
            std::string::npos);
  EXPECT_NE(complaint("\x80\x05\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01."s).find("64 bits"),
            std::string::npos);
  EXPECT_NE(complaint("\x80\x05]\x94h\x00\x61."s).find("hold themselves"), std::string::npos);
  EXPECT_NE(complaint("\x01"s).find("ObjectRefs"), std::string::npos);
}

TEST(PlainPickle, RefusesDamage) {
  for (const std::string& bytes :
       {"\x80\x05"s, "\x80\x05."s, "\x80\x05K"s, "\x80\x05\x86."s, "\x80\x05\x65."s,
        "\x80\x05h\x05."s, "\x80\x05\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s, "\x80\x05(K\x01t"s,
        "\x80\x05(."s, "\x80\x05K\x01K\x02s."s, "\x80\x05r\xff\xff\xff\xff."s}) {
    EXPECT_NE(complaint(bytes), "none");
  }
}

}  // namespace
}  // namespace ray::internal
