// The 80 bytes of plain text that begin every connection.
#include "common/rpc/preamble.h"

#include <gtest/gtest.h>

namespace rt::rpc {
namespace {

TEST(Preamble, IsEightyBytesOfPlainText) {
  std::string id(56, 'a');
  std::string bytes = encode_preamble({"worker", id});
  EXPECT_EQ(bytes, "RAY1 worker     " + id + std::string(7, ' ') + "\n");
  for (const Preamble& p :
       {Preamble{}, Preamble{"store", ""}, Preamble{"worker", id}, Preamble{"handoff", "0123"}}) {
    auto decoded = decode_preamble(encode_preamble(p));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->target, p.target);
    EXPECT_EQ(decoded->id, p.id);
  }
}

TEST(Preamble, EverythingElseIsRefused) {
  std::string good = encode_preamble({"worker", "abcd"});
  auto with = [&](size_t at, char c) {
    std::string bytes = good;
    bytes[at] = c;
    return bytes;
  };
  const std::string bad[] = {"",
                             good.substr(1),
                             good + " ",
                             std::string(80, ' '),
                             std::string(80, '\0'),
                             with(0, 'r'),
                             with(3, '2'),
                             with(79, ' '),
                             with(5, 'W'),
                             with(5, ' '),
                             with(14, 'x'),
                             with(15, 'a'),
                             with(16, 'g'),
                             with(18, ' '),
                             with(16, 'A'),
                             with(75, 'a'),
                             with(20, '\0'),
                             "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(53, 'a') + "\n"};
  for (const std::string& bytes : bad) {
    auto decoded = decode_preamble(bytes);
    ASSERT_FALSE(decoded) << bytes;
    EXPECT_EQ(decoded.error().code, Code::kProtocol);
  }
}

}  // namespace
}  // namespace rt::rpc
