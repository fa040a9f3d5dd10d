// FrameReader: cuts a stream of bytes into frames, however the bytes arrive.
#include "common/rpc/frame_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/rng.h"

namespace rt::rpc {
namespace {

std::string frame(FrameKind kind, uint32_t call, const std::string& message,
                  const std::string& attachment = "") {
  std::string bytes(kHeaderBytes, '\0');
  encode_header({static_cast<uint32_t>(message.size() + attachment.size()),
                 static_cast<uint32_t>(message.size()), 9, call, kind},
                reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes + message + attachment;
}

// Records the frames it is given. The call number chooses the route: from 1000 on directly into
// `target`, from 2000 on skipped, below 1000 whole.
class Recorder : public FrameReader::Sink {
 public:
  FrameReader::Route route(const FrameHeader& h) override {
    return h.call >= 2000   ? FrameReader::Route::kSkip
           : h.call >= 1000 ? FrameReader::Route::kDirect
                            : FrameReader::Route::kWhole;
  }
  void on_frame(const FrameHeader& h, Bytes message, Bytes attachment) override {
    seen.push_back(std::to_string(h.call) + ":" + std::string(as_view(message)) + "|" +
                   std::string(as_view(attachment)));
    if (h.call == stop_at) stopped = true;
  }
  MutableBytes on_direct_begin(const FrameHeader& h, Bytes message) override {
    begun.emplace_back(as_view(message));
    target.assign(h.body_bytes - h.message_bytes, 0);
    if (refuse_direct) return {};
    return target;
  }
  void on_direct_end(const FrameHeader& h) override {
    seen.push_back(std::to_string(h.call) + ":" + begun.back() + "|" +
                   std::string(target.begin(), target.end()));
  }
  bool wants_more() const override { return !stopped; }
  bool withholds_frames() const override { return waiting; }

  std::vector<std::string> seen, begun;
  std::vector<uint8_t> target;
  uint32_t stop_at = 0;
  bool stopped = false, refuse_direct = false, waiting = false;
};

// Feeds `bytes` in pieces of at most `piece` bytes, as reads of a socket would.
Status feed(FrameReader& reader, std::string_view bytes, size_t piece) {
  while (!bytes.empty()) {
    MutableBytes buffer = reader.buffer();
    EXPECT_FALSE(buffer.empty());
    size_t n = std::min({piece, bytes.size(), buffer.size()});
    std::memcpy(buffer.data(), bytes.data(), n);
    bytes.remove_prefix(n);
    RT_TRY(reader.commit(n));
  }
  return {};
}

TEST(FrameReader, CutsFramesWhateverThePieces) {
  Rng rng(11);
  std::string stream;
  std::vector<std::string> expected;
  for (int i = 1; i <= 200; ++i) {
    std::string message(rng.below(rng.chance(0.05) ? 300'000 : 200),
                        static_cast<char>('a' + i % 26));
    std::string attachment(rng.chance(0.3) ? rng.below(rng.chance(0.1) ? 500'000 : 100) : 0,
                           static_cast<char>('A' + i % 26));
    uint32_t call = i % 7 == 0 && !attachment.empty() ? 1000 + i : i % 11 == 0 ? 2000 + i : i;
    stream += frame(FrameKind::kResponse, call, message, attachment);
    if (call < 2000) expected.push_back(std::to_string(call) + ":" + message + "|" + attachment);
  }
  for (size_t piece :
       {size_t{1}, size_t{7}, size_t{1000}, size_t{16384}, size_t{65536}, stream.size()}) {
    Recorder recorder;
    FrameReader reader(recorder, kMaxFrameBytes);
    ASSERT_TRUE(feed(reader, stream, piece));
    EXPECT_TRUE(recorder.seen == expected) << "pieces of " << piece;
  }
}

TEST(FrameReader, FramesThatCanWaitAreKept) {
  std::string bytes;
  std::vector<std::string> expected;
  for (uint32_t call = 1; call <= 300; ++call) {
    std::string message(call * 7, static_cast<char>('a' + call % 26));
    bytes += frame(FrameKind::kRequest, call, message);
    expected.push_back(std::to_string(call) + ":" + message + "|");
  }
  for (size_t piece : {size_t{1}, size_t{1000}, bytes.size()}) {
    for (size_t handled : {size_t{0}, bytes.size() / 3}) {
      Recorder recorder;
      FrameReader reader(recorder, kMaxFrameBytes);
      ASSERT_TRUE(feed(reader, std::string_view(bytes).substr(0, handled), piece));
      size_t before = recorder.seen.size();
      recorder.waiting = true;
      ASSERT_TRUE(feed(reader, std::string_view(bytes).substr(handled), piece));
      EXPECT_EQ(recorder.seen.size(), before);
      EXPECT_GT(reader.kept_bytes(), bytes.size() - handled - 1);
      ASSERT_TRUE(reader.resume());
      EXPECT_EQ(recorder.seen.size(), before) << "it still waits";
      recorder.waiting = false;
      ASSERT_TRUE(reader.resume());
      EXPECT_EQ(recorder.seen, expected);
      EXPECT_EQ(reader.kept_bytes(), 0u);
      ASSERT_TRUE(feed(reader, frame(FrameKind::kRequest, 5, "on"), piece));
      EXPECT_EQ(recorder.seen.back(), "5:on|");
    }
  }
}

TEST(FrameReader, DirectBytesAreReadWhereTheyBelong) {
  Recorder recorder;
  FrameReader reader(recorder, kMaxFrameBytes);
  std::string attachment(1 << 20, 'z');
  std::string bytes = frame(FrameKind::kResponse, 1000, "m", attachment);
  ASSERT_TRUE(feed(reader, bytes.substr(0, 100), 100));
  // The rest is read straight into the target, without a buffer in between.
  MutableBytes buffer = reader.buffer();
  EXPECT_EQ(buffer.data(), recorder.target.data() + 100 - kHeaderBytes - 1);
  EXPECT_EQ(buffer.size(), attachment.size() - (100 - kHeaderBytes - 1));
  ASSERT_TRUE(feed(reader, bytes.substr(100) + frame(FrameKind::kResponse, 5, "next"), 50'000));
  ASSERT_EQ(recorder.seen.size(), 2u);
  EXPECT_EQ(recorder.seen[0], "1000:m|" + attachment);
  EXPECT_EQ(recorder.seen[1], "5:next|");
}

TEST(FrameReader, AnAbandonedTargetIsNotTouchedAgain) {
  for (bool refuse : {false, true}) {
    Recorder recorder;
    recorder.refuse_direct = refuse;
    FrameReader reader(recorder, kMaxFrameBytes);
    std::string bytes = frame(FrameKind::kResponse, 1000, "m", std::string(300'000, 'z'));
    ASSERT_TRUE(feed(reader, bytes.substr(0, 1000), 1000));
    reader.abandon_direct();
    std::fill(recorder.target.begin(), recorder.target.end(), 0);
    ASSERT_TRUE(feed(reader, bytes.substr(1000) + frame(FrameKind::kResponse, 5, "next"), 7000));
    EXPECT_EQ(recorder.seen, std::vector<std::string>{"5:next|"});
    EXPECT_EQ(std::count(recorder.target.begin(), recorder.target.end(), 0), 300'000);
  }
}

TEST(FrameReader, StopsAtErrorsAndWhenToldTo) {
  Recorder recorder;
  FrameReader reader(recorder, 1000);
  Status status = feed(
      reader,
      frame(FrameKind::kRequest, 1, "ok") + frame(FrameKind::kRequest, 2, std::string(1001, 'x')),
      65536);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kProtocol);
  EXPECT_EQ(recorder.seen, std::vector<std::string>{"1:ok|"});

  Recorder stopping;
  stopping.stop_at = 1;
  FrameReader second(stopping, 1000);
  ASSERT_TRUE(feed(second,
                   frame(FrameKind::kRequest, 1, "a") + frame(FrameKind::kRequest, 2, "b") +
                       "garbage that is not looked at, ever",
                   65536));
  EXPECT_EQ(stopping.seen.size(), 1u);
}

TEST(FrameReader, AnnouncedBytesGetNoMemoryBeforeTheyCome) {
  Recorder recorder;
  FrameReader reader(recorder, kMaxFrameBytes);
  std::string head = frame(FrameKind::kRequest, 1, "");
  encode_header({kMaxFrameBytes, kMaxFrameBytes, 0, 1, FrameKind::kRequest},
                reinterpret_cast<uint8_t*>(head.data()));
  ASSERT_TRUE(feed(reader, head, 1000));
  EXPECT_LE(reader.buffer().size(), size_t{1} << 20);
}

}  // namespace
}  // namespace rt::rpc
