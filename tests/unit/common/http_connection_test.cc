// One connection of the HTTP server, on a channel that delivers the bytes in pieces of the test's
// choice: what the kernel makes of a client's packets is chance.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/base/rng.h"
#include "common/http/connection.h"

namespace rt::http {
namespace {

using testing::HasSubstr;

constexpr size_t kMostBytes = 1 << 20;

// Each read returns one piece at most; behind the last one the peer has closed.
class Pieces final : public net::Channel {
 public:
  explicit Pieces(std::vector<std::string> pieces) : net::Channel(Fd()), left_(std::move(pieces)) {}

  ssize_t read_some(void* data, size_t size, int64_t) override {
    while (at_ < left_.size() && left_[at_].empty()) ++at_;
    if (at_ == left_.size()) return 0;
    const size_t n = std::min(size, left_[at_].size());
    std::memcpy(data, left_[at_].data(), n);
    left_[at_].erase(0, n);
    read_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write_some(const void*, size_t size, int64_t) override {
    return static_cast<ssize_t>(size);
  }
  size_t read() const { return read_; }

 private:
  std::vector<std::string> left_;
  size_t at_ = 0, read_ = 0;
};

struct Conversation {
  explicit Conversation(std::vector<std::string> pieces) {
    auto made = std::make_unique<Pieces>(std::move(pieces));
    channel = made.get();
    connection = std::make_unique<Connection>(std::move(made), 1000, ending);
  }
  bool has_request() {
    Refusal refusal;
    return connection->read_head(1000, &refusal) == Connection::Next::kRequest;
  }
  // Returns the body of the next request, or "STATUS: WHY".
  std::string body() {
    if (!has_request()) return "no request";
    std::string body;
    const Refusal refusal = connection->read_body(kMostBytes, &body);
    return refusal.status == 0 ? body : fmt::format("{}: {}", refusal.status, refusal.text);
  }

  const std::atomic<bool> ending{false};
  Pieces* channel;
  std::unique_ptr<Connection> connection;
};

std::vector<std::string> bytes_of(const std::string& text) {
  std::vector<std::string> bytes;
  for (char c : text) bytes.emplace_back(1, c);
  return bytes;
}

const std::string kChunked = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(HttpConnection, AChunkedBodyMayArriveInAnyPieces) {
  const std::string next = "POST /y HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
  for (const auto& [packed, body] : std::vector<std::pair<std::string, std::string>>{
           {"0\r\n\r\n", ""},
           {"000\r\nX: y\r\n\r\n", ""},
           {"3\r\nabc\r\n0\r\n\r\n", "abc"},
           {"1;a=\"b\";c\r\nx\r\n000a\r\n0123456789\r\n0;a=b\r\nX: y\r\nZ:\r\n\r\n",
            "x0123456789"}}) {
    const std::string all = kChunked + packed + next;
    Conversation slow(bytes_of(all));
    EXPECT_EQ(slow.body(), body) << packed;
    EXPECT_EQ(slow.body(), "ab") << packed;
    for (size_t first = kChunked.size(); first < kChunked.size() + packed.size(); ++first) {
      for (size_t second = first; second < all.size(); ++second) {
        Conversation two(
            {all.substr(0, first), all.substr(first, second - first), all.substr(second)});
        EXPECT_EQ(two.body(), body) << packed << " cut at " << first << " and " << second;
        EXPECT_EQ(two.body(), "ab") << packed << " cut at " << first << " and " << second;
      }
    }
  }
}

TEST(HttpConnection, HeadsOfChunksAndTrailersAreBounded) {
  const std::string much(kMostBytes, 'x');
  for (const std::string& endless : {"5;" + much, "5;a=\"\r\n" + much, "0;a=" + much,
                                     "0\r\nX: " + much, "0" + std::string(kMostBytes, '0')}) {
    Conversation talk({kChunked + endless});
    EXPECT_THAT(talk.body(), testing::StartsWith("400")) << endless.substr(0, 8);
    EXPECT_LT(talk.channel->read(), 64u << 10) << endless.substr(0, 8);
  }
  std::string fields = "0\r\n";
  while (fields.size() < kMostBytes) fields += "A: b\r\n";
  Conversation talk({kChunked + fields});
  EXPECT_THAT(talk.body(), testing::StartsWith("400"));
  EXPECT_LT(talk.channel->read(), 64u << 10);
}

TEST(HttpConnection, OldRequestsHaveNoChunks) {
  const std::string rest = " /x HTTP/1.0\r\nConnection: keep-alive\r\n";
  EXPECT_THAT(Conversation({"POST" + rest + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}).body(),
              testing::StartsWith("400"));
  EXPECT_EQ(Conversation({"POST" + rest + "Content-Length: 2\r\n\r\nab"}).body(), "ab");
}

TEST(HttpConnection, NoRequestFollowsABodyThatIsNotRead) {
  const std::string start = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  Conversation unread({start + "2\r\n\r\nab"}), none({start + "0\r\n\r\n"});
  ASSERT_TRUE(unread.has_request() && none.has_request());
  EXPECT_FALSE(unread.connection->answer({}));
  EXPECT_TRUE(none.connection->answer({}));
}

// Cuts, repeats and changes what a client might send, and delivers it in pieces of any size.
TEST(HttpConnection, NoBytesOfAClientEndTheProcess) {
  constexpr std::string_view kParts[] = {
      "0",    "00", "5",         "a;b",      "ffffffffffffffff",
      "\r\n", "\r", "\n",        "x",        "hello",
      "X: y", ":",  " ",         "\t",       ";a=\"b\"",
      "\"",   "\\", "\r\n0\r\n", "\r\n\r\n", "10000000000000000"};
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed);
    std::string head = kChunked, rest;
    for (uint64_t parts = rng.below(12); parts > 0; --parts)
      rest += kParts[rng.below(std::size(kParts))];
    if (rng.below(4) == 0) head[rng.below(head.size())] = static_cast<char>(rng.below(256));
    std::vector<std::string> pieces = {head};
    for (size_t at = 0, most = 1 + rng.below(8); at < rest.size(); at += pieces.back().size())
      pieces.push_back(rest.substr(at, 1 + rng.below(most)));
    Conversation talk(pieces);
    for (int i = 0; i < 3 && talk.body() == ""; ++i) {}
  }
}

}  // namespace
}  // namespace rt::http
