// The layout of frame headers and the hash of method names.
#include "common/rpc/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace rt::rpc {
namespace {

TEST(Frame, TheHeaderHasItsDocumentedLayout) {
  uint8_t bytes[kHeaderBytes];
  encode_header({0x04030201, 0x00030201, 0x0d0c0b0a, 0x44332211, FrameKind::kFlat}, bytes);
  const uint8_t expected[kHeaderBytes] = {1,    2,    3,    4,    1,    2,    3,    0, 0x0a,
                                          0x0b, 0x0c, 0x0d, 0x11, 0x22, 0x33, 0x44, 4};
  EXPECT_EQ(std::memcmp(bytes, expected, kHeaderBytes), 0);
  auto header = decode_header(bytes, 0x04030201);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->body_bytes, 0x04030201u);
  EXPECT_EQ(header->message_bytes, 0x00030201u);
  EXPECT_EQ(header->method, 0x0d0c0b0au);
  EXPECT_EQ(header->call, 0x44332211u);
  EXPECT_EQ(header->kind, FrameKind::kFlat);
}

TEST(Frame, MalformedHeadersAreRefusedWithTheReason) {
  struct {
    std::function<void(uint8_t*)> damage;
    const char* says;
  } const cases[] = {
      {[](uint8_t* h) { h[16] = 7; }, "unknown kind 7"},
      {[](uint8_t* h) { h[16] = 255; }, "unknown kind 255"},
      {[](uint8_t* h) { h[17] = 1; }, "padding"},
      {[](uint8_t* h) { h[23] = 0x80; }, "padding"},
      {[](uint8_t* h) { h[0] = 101; }, "oversized"},
      {[](uint8_t* h) { h[3] = 0xff; }, "oversized"},
      {[](uint8_t* h) { h[4] = 51; }, "message of 51 bytes in a body of 50"},
      {[](uint8_t* h) { h[7] = 0x80; }, "in a body of 50"},
      {[](uint8_t* h) { std::memcpy(h, "GET / HTTP/1.1\r\nHost: localhost", kHeaderBytes); },
       "padding"},
  };
  for (const auto& c : cases) {
    uint8_t bytes[kHeaderBytes];
    encode_header({50, 50, 1, 2, FrameKind::kRequest}, bytes);
    ASSERT_TRUE(decode_header(bytes, 100));
    c.damage(bytes);
    auto header = decode_header(bytes, 100);
    ASSERT_FALSE(header) << c.says;
    EXPECT_EQ(header.error().code, Code::kProtocol);
    EXPECT_NE(header.error().message.find(c.says), std::string::npos) << header.error().message;
  }
}

TEST(Frame, MethodHashIsFnv1a) {
  EXPECT_EQ(method_hash(""), 2166136261u);
  EXPECT_EQ(method_hash("a"), 0xe40c292cu);
  EXPECT_EQ(method_hash("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace rt::rpc
